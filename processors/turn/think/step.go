package think

import (
	"errors"
	"fmt"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Why a record of enriched-message-input is no step.
var (
	errUnreadable = errors.New("think: record is no enriched message")
	errNoInput    = errors.New("think: enriched message has no latest_input that is a message")
	errHistory    = errors.New("think: history has an element that is no message")
	errKeyless    = errors.New("think: record has no key")
)

// readStep is the step that a record asks for, and the record.
func (w *Worker) readStep(r processors.Inbound) (Step, topics.EnrichedMessage, error) {
	in := w.topics.EnrichedMessageInput.Codec().Unmarshal(r.Value)
	if in.Err != nil || in.Tombstone() {
		return Step{}, in.Value, errUnreadable
	}
	m := in.Value
	if len(r.Key) == 0 {
		return Step{}, m, errKeyless
	}
	at := r.Timestamp
	if at.UnixMilli() <= 0 {
		at = w.rules.clock.Now()
	}
	s := Step{
		Agent: w.topics.Agent, SessionID: string(r.Key), UserID: m.UserID, Cost: m.Cost, Key: keyOf(r),
		Deadline: at.Add(w.rules.timeout),
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
	return s, m, nil
}

// keyOf names a step: by the id of its record, else by where it stands.
func keyOf(r processors.Inbound) string {
	if id := r.Header(topics.HeaderID); len(id) > 0 {
		return string(id)
	}
	return fmt.Sprintf("%s/%d/%d", r.Topic, r.Partition, r.Offset)
}
