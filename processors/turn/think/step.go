package think

import (
	"errors"
	"strings"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/responder"
	"github.com/turntable-streams/turntable/topics"
)

// Why a record of enriched-message-input is not a valid step.
var (
	errUnreadable = errors.New("think: record is not an enriched message")
	errNoInput    = errors.New("think: latest_input of the enriched message is not a message")
	errHistory    = errors.New("think: history has an element that is not a message")
	errKeyless    = errors.New("think: record has no key")
)

// readStep decodes a record and returns its step and its value.
func (w *Worker) readStep(r processors.Inbound) (Step, topics.EnrichedMessage, error) {
	in := w.topics.EnrichedMessageInput.Codec().Unmarshal(r.Value)
	if in.Err != nil || in.Tombstone() {
		return Step{}, in.Value, errUnreadable
	}
	m := in.Value
	if len(r.Key) == 0 {
		return Step{}, m, errKeyless
	}
	s := Step{
		Agent: w.topics.Agent, SessionID: string(r.Key), UserID: m.UserID, Cost: m.Cost, Key: responder.KeyOf(r),
		Deadline: w.rules.Deadline(r), EphemeralPrompt: m.EphemeralPrompt, TurnID: m.TurnID, Number: m.Step,
	}
	if m.MemoirContext != nil {
		s.Memoir = *m.MemoirContext
	}
	if m.History != nil {
		for message, err := range topics.Messages(m.History) {
			if err != nil {
				return Step{}, m, errHistory
			}
			s.Messages = append(s.Messages, message)
		}
	}
	input, err := topics.DecodeMessage(m.LatestInput)
	if err != nil {
		return Step{}, m, errNoInput
	}
	s.Messages = append(s.Messages, input)
	if s.TurnID == "" {
		s.TurnID, s.Number = firstStep(s.Key)
	}
	if s.Number == 1 {
		s.request = requestOf(input)
	}
	return s, m, nil
}

// firstStep returns the turn of which the key names the first step. A turn that has not seen events of its worker does not
// say where they belong: the worker begins the stream, and its response tells the turn so.
func firstStep(key string) (turn string, number int64) {
	if p := strings.Split(key, "/"); len(p) == 4 && p[0] != "" && p[1] == "1" && p[2] == "enriched" && p[3] == "0" {
		return p[0], 1
	}
	return "", 0
}

// requestOf names the message that a turn answers, as a part of the enriched message; nil if it has no request ID.
func requestOf(m topics.Message) topics.Raw {
	id, _ := topics.Lookup(m.Metadata, "request_id")
	text := topics.TextOf(id)
	if len(id) == 0 || id[0] != '"' || text == nil || *text == "" {
		return nil
	}
	return topics.RequestOf(*text)
}
