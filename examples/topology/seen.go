package main

import (
	"strings"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// seen is what the program knows of the records: its users' questions with their answers, the gates, and the memories.
type seen struct {
	topics    topics.Catalog // of the orchestrator
	count     tally
	questions map[string][]asked            // by session
	answers   map[string]topics.Output      // by session and request, see answerKey
	requests  []topics.GateRequest          // of gates, in order
	ended     map[string]bool               // the gates that have an outcome
	memories  map[string]processors.Inbound // the last one, by user
}

// tally counts records, and the turns of both agents that have ended.
type tally struct{ turns, records int }

// asked is a question of the user.
type asked struct{ request, text string }

func newSeen(orchestrator topics.Catalog) *seen {
	return &seen{
		topics: orchestrator, questions: map[string][]asked{}, answers: map[string]topics.Output{}, ended: map[string]bool{},
		memories: map[string]processors.Inbound{},
	}
}

func answerKey(session, request string) string { return session + "\x00" + request }

// take adds a record.
func (s *seen) take(r processors.Inbound) {
	s.count.records++
	session := string(r.Key)
	if strings.HasSuffix(r.Topic, "-message-output") {
		s.count.turns++
	}
	switch r.Topic {
	case s.topics.MessageInput.Name():
		if m := decode(s.topics.MessageInput, r); m != nil && is(*m, "user") {
			s.questions[session] = append(s.questions[session], asked{requestOf(*m), topics.Text(m.Content)})
		}
	case s.topics.MessageOutput.Name():
		if out := decode(s.topics.MessageOutput, r); out != nil {
			s.answers[answerKey(session, text(out.RequestID))] = *out // a repeat is the same
		}
	case s.topics.GateRequests.Name():
		if g := decode(s.topics.GateRequests, r); g != nil && g.Withdrawn == "" {
			s.requests = append(s.requests, *g)
		}
	case s.topics.GateOutcomes.Name():
		if o := decode(s.topics.GateOutcomes, r); o != nil {
			s.ended[o.GateID] = true
		}
	case s.topics.MemoirContext.Name():
		s.memories[string(r.Key)] = r
	}
}

// decode returns the value of a record, nil if it has none or cannot be read.
func decode[T any](t topics.Topic[T], r processors.Inbound) *T {
	v := t.Codec().Unmarshal(r.Value)
	if v.Err != nil || v.Tombstone() {
		return nil
	}
	return &v.Value
}
