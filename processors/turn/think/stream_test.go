package think_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// deltas returns a model that yields these pieces, and then an error unless it is nil.
func deltas(err error, pieces ...think.Delta) think.StreamFunc {
	return func(context.Context, think.Step) iter.Seq2[think.Delta, error] {
		return func(yield func(think.Delta, error) bool) {
			for _, d := range pieces {
				if !yield(d, nil) {
					return
				}
			}
			if err != nil {
				yield(think.Delta{}, err)
			}
		}
	}
}

func streaming(t *testing.T, to *paper, m think.Streamer) think.Model {
	t.Helper()
	model, err := think.Stream("pilot", to, m, think.WithStreamClock(clock.NewFake(noon)))
	require.NoError(t, err)
	return model
}

var step = think.Step{Agent: "pilot", SessionID: "s", Key: "turn/1/enriched/0", TurnID: "turn", Number: 1}

// inTurn is the record of a step with a place in the event stream of its turn.
var inTurn = strings.Replace(question, `{`, `{"turn_id":"turn","step":1,`, 1)

// eventsOf returns the agent events of the records, which must be those of one attempt at the step without gaps. The pieces of
// a block are joined, because how many records they are depends on the speed of the publisher. None is a terminal record: only
// the turn writes one.
func eventsOf(t *testing.T, records []processors.Outbound) (events []string) {
	t.Helper()
	catalog, err := topics.For("pilot")
	require.NoError(t, err)
	for i, r := range records {
		require.Equal(t, "pilot-agent-events", r.Topic)
		require.Equal(t, "s", r.Key)
		in := catalog.AgentEvents.Codec().Unmarshal(r.Value)
		require.NoError(t, in.Err)
		e := in.Value
		require.Equal(t, []any{"s", "turn", int64(1), noon.UnixMilli(), int64(i + 1)},
			[]any{e.SessionID, e.TurnID, e.Step, e.Attempt, e.Seq})
		require.Nil(t, e.Result)
		text := string(e.Event)
		if last := len(events) - 1; last >= 0 && strings.Contains(text, `_delta"`) && strings.Contains(events[last], `_delta"`) {
			_, piece, _ := strings.Cut(text, `"delta":"`)
			events[last] = strings.TrimSuffix(events[last], `"}}`) + piece
			continue
		}
		events = append(events, text)
	}
	return events
}

// announced returns the value of the header that names the events of a response; empty for none.
func announced(r processors.Outbound) string { return string(r.Headers[topics.HeaderEvents]) }

func TestPiecesBecomeEventsAndAReply(t *testing.T) {
	cost, to := 0.25, new(paper)
	reply, err := streaming(t, to, deltas(
		nil, think.Delta{Thought: "h"}, think.Delta{Thought: "m"}, think.Delta{Text: "Let me "}, think.Delta{Text: "\"look\"."},
		think.Delta{Call: &think.Call{ID: "c1", Name: "berth_lookup", Input: topics.Raw(`{"at":"18:00"}`)}},
		think.Delta{Call: &think.Call{ID: "c2", Name: "clock"}}, think.Delta{Text: "And"}, think.Delta{EndBlock: true},
		think.Delta{Text: "so on."}, think.Delta{Usage: &think.Usage{InputTokens: 10, OutputTokens: 3, Cost: &cost}},
	)).Think(t.Context(), step)
	require.NoError(t, err)
	require.Equal(t, []think.Block{
		{Text: `Let me "look".`},
		{Call: &think.Call{ID: "c1", Name: "berth_lookup", Input: topics.Raw(`{"at":"18:00"}`)}},
		{Call: &think.Call{ID: "c2", Name: "clock"}},
		{Text: "And"},
		{Text: "so on."},
	}, reply.Blocks)
	require.Equal(t, []any{int64(10), int64(3), &cost}, []any{reply.InputTokens, reply.OutputTokens, reply.Cost})
	events := eventsOf(t, to.all())
	require.Equal(t, []string{
		`{"type":"thought_start","data":{"type":"thought_start","id":"reason-1-0"}}`,
		`{"type":"thought_delta","data":{"type":"thought_delta","id":"reason-1-0","delta":"hm"}}`,
		`{"type":"thought_end","data":{"type":"thought_end","id":"reason-1-0"}}`,
		`{"type":"message_start","data":{"type":"message_start","id":"msg-1-1"}}`,
		`{"type":"message_delta","data":{"type":"message_delta","id":"msg-1-1","delta":"Let me \"look\"."}}`,
		`{"type":"message_end","data":{"type":"message_end","id":"msg-1-1"}}`,
		`{"type":"tool_call","data":{"type":"tool_call","id":"c1","name":"berth_lookup","input":{"at":"18:00"}}}`,
		`{"type":"tool_call","data":{"type":"tool_call","id":"c2","name":"clock","input":{}}}`,
		`{"type":"message_start","data":{"type":"message_start","id":"msg-1-2"}}`,
		`{"type":"message_delta","data":{"type":"message_delta","id":"msg-1-2","delta":"And"}}`,
		`{"type":"message_end","data":{"type":"message_end","id":"msg-1-2"}}`,
		`{"type":"message_start","data":{"type":"message_start","id":"msg-1-3"}}`,
		`{"type":"message_delta","data":{"type":"message_delta","id":"msg-1-3","delta":"so on."}}`,
		`{"type":"message_end","data":{"type":"message_end","id":"msg-1-3"}}`,
	}, events)
	require.Equal(t, "turn/1/enriched/0/event/1781956800000/1", string(to.all()[0].Headers[topics.HeaderID]))
}

// A response names the attempt at its step and the last of its events, so that the turn takes these and no others.
func TestResponseNamesTheEventsOfItsStep(t *testing.T) {
	text := think.Delta{Text: "Ber"}
	failed := errors.New("anthropic: status 529 (overloaded_error)")
	panics := think.StreamFunc(func(context.Context, think.Step) iter.Seq2[think.Delta, error] {
		return func(yield func(think.Delta, error) bool) {
			yield(text, nil)
			panic("secret")
		}
	})
	call := think.Delta{Call: &think.Call{ID: "c", Name: "n"}}
	badCall := think.Delta{Call: &think.Call{ID: "c", Name: "n", Input: topics.Raw("[")}}
	for name, c := range map[string]struct {
		model think.StreamFunc
		want  string // the header of the response; empty for a failure
	}{
		"complete":   {deltas(nil, text), "1781956800000/3/end_turn"},
		"max_tokens": {deltas(nil, text, think.Delta{Stop: "max_tokens"}), "1781956800000/3/max_tokens"},
		"call":       {deltas(nil, text, call), "1781956800000/4/tool_use"},
		"failed":     {deltas(failed, text), ""},
		"bad call":   {deltas(nil, text, badCall), ""},
		"panic":      {panics, ""},
	} {
		t.Run(name, func(t *testing.T) {
			events := new(paper)
			b := newBench(t, streaming(t, events, c.model).Think, think.Config{})
			b.handle(record(inTurn))
			require.Len(t, b.paper.all(), 1)
			require.Equal(t, c.want, announced(b.paper.all()[0]))
			require.Contains(t, eventsOf(t, events.all())[1], `"delta":"Ber"`)
		})
	}
}

// A later step of a turn that began without a stream is answered all the same. A stream of the step alone would have no end.
func TestStepOfATurnWithoutEventsHasNone(t *testing.T) {
	events := new(paper)
	b := newBench(t, streaming(t, events, deltas(nil, think.Delta{Text: "N4."})).Think, think.Config{})
	later := record(question)
	later.Headers[0].Value = []byte("turn/2/enriched/0")
	b.handle(later)
	require.Len(t, b.paper.all(), 1)
	require.Equal(t, topics.NoEvents, announced(b.paper.all()[0]))
	require.Empty(t, events.all())
}

// The turn does not know yet whether its worker writes events. The first one says which message the turn answers.
func TestFirstStepBeginsTheStreamOfItsTurn(t *testing.T) {
	events := new(paper)
	b := newBench(t, streaming(t, events, deltas(nil, think.Delta{Text: "N4."})).Think, think.Config{})
	b.handle(record(strings.Replace(question, `"role":"user","content":"Which`, `"metadata":{"request_id":"r1"},"role":"user","content":"Which`, 1)))
	require.Equal(t, "1781956800000/3/end_turn", announced(b.paper.all()[0]))
	eventsOf(t, events.all())
	for i, r := range events.all() {
		request, named := topics.Lookup(r.Value, "request")
		require.Equal(t, i == 0, named)
		if named {
			require.Equal(t, `{"latest_input":{"metadata":{"request_id":"r1"}}}`, string(request))
		}
	}
}

// Two calls within a millisecond are two attempts.
func TestEveryCallIsAnAttemptOfItsOwn(t *testing.T) {
	to := new(paper)
	model := streaming(t, to, deltas(nil, think.Delta{Text: "a"}))
	var attempts []int64
	for range 2 {
		_, err := model.Think(t.Context(), step)
		require.NoError(t, err)
		last := to.all()[len(to.all())-1]
		e, err := topics.DecodeAgentEvent(last.Value)
		require.NoError(t, err)
		attempts = append(attempts, e.Attempt)
	}
	require.Equal(t, []int64{noon.UnixMilli(), noon.UnixMilli() + 1}, attempts)
}

// A call whose context has ended needs no further events: the response will be another one.
func TestInterruptedCallDoesNotWaitForItsEvents(t *testing.T) {
	to := new(paper)
	to.refuse = func(processors.Outbound) error { return errors.New("brokers are away") }
	stopped, stop := context.WithCancel(t.Context())
	stop()
	_, err := streaming(t, to, deltas(context.Canceled, think.Delta{Text: "Ber"})).Think(stopped, step)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, to.all())
}

func TestPiecesThatWaitForThePublisherBecomeOneEvent(t *testing.T) {
	to, blocked, release := new(paper), make(chan struct{}, 1), make(chan struct{})
	first := true
	to.refuse = func(processors.Outbound) error {
		if first {
			first = false
			blocked <- struct{}{}
			<-release
		}
		return nil
	}
	model := think.StreamFunc(func(context.Context, think.Step) iter.Seq2[think.Delta, error] {
		return func(yield func(think.Delta, error) bool) {
			yield(think.Delta{Text: "a"}, nil)
			<-blocked
			for range 1000 {
				yield(think.Delta{Text: "b"}, nil)
			}
			close(release)
		}
	})
	reply, err := streaming(t, to, model).Think(t.Context(), step)
	require.NoError(t, err)
	require.Len(t, reply.Blocks[0].Text, 1001)
	require.Less(t, len(to.all()), 8)
	events := eventsOf(t, to.all())
	require.Contains(t, events[1], `"delta":"a`+strings.Repeat("b", 1000)+`"`)
}

func TestLongTextIsSeveralEvents(t *testing.T) {
	to, text := new(paper), strings.Repeat("ü", 40_000)
	_, err := streaming(t, to, deltas(nil, think.Delta{Text: text})).Think(t.Context(), step)
	require.NoError(t, err)
	events := eventsOf(t, to.all())
	require.Contains(t, events[1], `"delta":"`+text+`"`)
	require.Len(t, to.all(), 7, "start, five pieces of up to 16 KiB, and end")
}

// The turn then writes the events of the step from its response.
func TestResponseDoesNotNameEventsThatAreIncomplete(t *testing.T) {
	for name, refused := range map[string]error{
		"an event is too large":   processors.ErrTooLarge,
		"the publisher is closed": processors.ErrPublisherClosed,
	} {
		t.Run(name, func(t *testing.T) {
			events := new(paper)
			events.refuse = func(r processors.Outbound) error {
				if strings.Contains(string(r.Value), "tool_call") {
					return refused
				}
				return nil
			}
			b := newBench(t, streaming(t, events, deltas(nil, think.Delta{Text: "a"},
				think.Delta{Call: &think.Call{ID: "c", Name: "n"}}, think.Delta{Text: "b"})).Think, think.Config{})
			b.handle(record(inTurn))
			require.Len(t, b.paper.all(), 1)
			require.Equal(t, "pilot-think-request-response", b.paper.all()[0].Topic)
			require.Equal(t, topics.NoEvents, announced(b.paper.all()[0]))
		})
	}
}

func TestEventsAreRetriedUntilTheBrokersAreBack(t *testing.T) {
	to, tries := new(paper), 0
	to.refuse = func(processors.Outbound) error {
		if tries++; tries < 3 {
			return errors.New("brokers are away")
		}
		return nil
	}
	_, err := streaming(t, to, deltas(nil, think.Delta{Text: "a"})).Think(t.Context(), step)
	require.NoError(t, err)
	require.Len(t, eventsOf(t, to.all()), 3)
}

func TestEventsOfAReplyAreRetriedAfterTheDeadline(t *testing.T) {
	to, tries := new(paper), 0
	to.refuse = func(r processors.Outbound) error {
		if tries++; tries == 1 {
			return errors.New("brokers are away")
		}
		return nil
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	_, err := streaming(t, to, deltas(nil, think.Delta{Text: "a"})).Think(ctx, step)
	require.NoError(t, err)
	require.Len(t, eventsOf(t, to.all()), 3)
}

func TestReplyIsKeptIfItsEventsCannotBePublished(t *testing.T) {
	to := new(paper)
	to.refuse = func(processors.Outbound) error { return processors.ErrPublisherClosed }
	reply, err := streaming(t, to, deltas(nil, think.Delta{Text: "a"})).Think(t.Context(), step)
	require.NoError(t, err)
	require.Equal(t, "a", reply.Blocks[0].Text)
}

func TestRepeatOfASettledStepPublishesNoEvents(t *testing.T) {
	events := new(paper)
	model := streaming(t, events, deltas(nil, think.Delta{Text: "N4."}))
	b := newBench(t, model.Think, think.Config{})
	b.handle(record(inTurn))
	published := len(events.all())
	require.Positive(t, published)
	b.handle(record(inTurn))
	require.Len(t, b.paper.all(), 2)
	require.Equal(t, announced(b.paper.all()[0]), announced(b.paper.all()[1]))
	require.Len(t, events.all(), published)
}

func TestStreamChecksItsArguments(t *testing.T) {
	m := deltas(nil)
	_, err := think.Stream(" ", new(paper), m)
	require.ErrorIs(t, err, topics.ErrAgent)
	for _, broken := range []func() (think.Model, error){
		func() (think.Model, error) { return think.Stream("pilot", nil, m) },
		func() (think.Model, error) { return think.Stream("pilot", new(paper), nil) },
		func() (think.Model, error) { return think.Stream("pilot", new(paper), m, think.WithStreamClock(nil)) },
		func() (think.Model, error) { return think.Stream("pilot", new(paper), m, think.WithStreamLogger(nil)) },
	} {
		_, err := broken()
		require.ErrorIs(t, err, think.ErrConfig)
	}
}

func TestCollectJoinsPieces(t *testing.T) {
	reply, stop, err := think.Collect(deltas(nil, think.Delta{Text: "a"}, think.Delta{Thought: "hm"}, think.Delta{Text: "b"}).
		Stream(t.Context(), step))
	require.NoError(t, err)
	require.Equal(t, "end_turn", stop)
	require.Equal(t, []think.Block{{Text: "a"}, {Text: "b"}}, reply.Blocks)
	reply, _, err = think.Collect(deltas(think.ErrRefused, think.Delta{Text: "a", Usage: &think.Usage{InputTokens: 7}}).
		Stream(t.Context(), step))
	require.ErrorIs(t, err, think.ErrRefused)
	require.Equal(t, think.Reply{InputTokens: 7}, reply, "what a failed call used")
}
