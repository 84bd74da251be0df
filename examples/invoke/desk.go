package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/processors/fold/invoke"
	"github.com/turntable-streams/turntable/topics"
)

// desk is an embedded agent that asks before it pays. It needs no broker.
type desk struct{}

// bill is what the desk pays.
const bill = `{"amount":30,"currency":"EUR","to":"harbour"}`

// Invoke asks for approval of a payment, or of two if the message contains the word twice.
func (desk) Invoke(_ context.Context, r invoke.Request) (invoke.Stream, error) {
	payments := 1
	for _, m := range r.Messages() {
		if strings.Contains(string(m), "twice") {
			payments = 2
		}
	}
	var events []string
	for i := range payments {
		// The IDs are those of the turn, so that an answer to an older turn matches no payment of this one.
		id := fmt.Sprintf("%s-%d", r.Trace.SpanID, i+1)
		events = append(
			events,
			`{"type":"tool_call","id":"call-`+id+`","name":"pay","input":`+bill+`}`,
			`{"type":"interaction_request","id":"approval-`+id+`","kind":"user_approval",`+
				`"payload":{"toolCallId":"call-`+id+`","toolCall":{"name":"pay","rawInput":`+bill+`}}}`,
		)
	}
	return &stream{events: append(events, `{"type":"done","stopReason":"paused"}`)}, nil
}

// Continue pays what was approved. The arguments are those that the turn has stored.
func (desk) Continue(_ context.Context, _ invoke.Request, c invoke.Continuation) (invoke.Stream, error) {
	s := &stream{}
	paid := 0
	for _, d := range c.Decisions {
		s.first = append(s.first, d.Events()...)
		if d.Approved() {
			paid++
			s.events = append(s.events, `{"type":"tool_result","id":"`+d.Interaction.ToolUseID+`","output":{"paid":`+string(d.Interaction.Args)+`}}`)
		}
	}
	s.events = append(
		s.events,
		`{"type":"message","text":"`+fmt.Sprintf("%d of %d paid.", paid, len(c.Decisions))+`"}`,
		`{"type":"done"}`,
	)
	return s, nil
}

// stream plays events.
type stream struct {
	first  []folder.Event
	events []string
}

func (s *stream) Next(context.Context) (invoke.Item, error) {
	if len(s.first) > 0 {
		e := s.first[0]
		s.first = s.first[1:]
		return invoke.Item{Event: e}, nil
	}
	if len(s.events) == 0 {
		return invoke.Item{}, io.EOF
	}
	e, err := folder.DecodeEvent(topics.Raw(s.events[0]))
	s.events = s.events[1:]
	return invoke.Item{Event: e}, err
}

func (*stream) End() folder.End { return folder.End{} }
func (*stream) Close() error    { return nil }
