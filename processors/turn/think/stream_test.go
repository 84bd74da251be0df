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

var step = think.Step{Agent: "pilot", SessionID: "s", Key: "turn/1/enriched/0"}

// eventsOf returns the agent events of the records, which must be one attempt's without gaps. The pieces of a block are
// joined, because how many records they are depends on the speed of the publisher.
func eventsOf(t *testing.T, records []processors.Outbound) (events []string, result *topics.AgentResult) {
	t.Helper()
	catalog, err := topics.For("pilot")
	require.NoError(t, err)
	for i, r := range records {
		require.Equal(t, "pilot-agent-events", r.Topic)
		require.Equal(t, "s", r.Key)
		in := catalog.AgentEvents.Codec().Unmarshal(r.Value)
		require.NoError(t, in.Err)
		e := in.Value
		require.Equal(t, []any{"s", "turn/1/enriched/0", noon.UnixMilli(), int64(i + 1)},
			[]any{e.SessionID, e.TurnID, e.Attempt, e.Seq})
		require.Nil(t, result, "the terminal record is the last one")
		if result = e.Result; result != nil {
			continue
		}
		text := string(e.Event)
		if last := len(events) - 1; last >= 0 && strings.Contains(text, `_delta"`) && strings.Contains(events[last], `_delta"`) {
			_, piece, _ := strings.Cut(text, `"delta":"`)
			events[last] = strings.TrimSuffix(events[last], `"}}`) + piece
			continue
		}
		events = append(events, text)
	}
	return events, result
}

func TestPiecesBecomeEventsAndAReply(t *testing.T) {
	cost, to := 0.25, new(paper)
	reply, err := streaming(t, to, deltas(
		nil, think.Delta{Thought: "h"}, think.Delta{Thought: "m"}, think.Delta{Text: "Let me "}, think.Delta{Text: "\"look\"."},
		think.Delta{Call: &think.Call{ID: "c1", Name: "berth_lookup", Input: topics.Raw(`{"at":"18:00"}`)}},
		think.Delta{Call: &think.Call{ID: "c2", Name: "clock"}}, think.Delta{Text: "And"}, think.Delta{EndBlock: true},
		think.Delta{Text: "so on."}, think.Delta{Usage: &think.Usage{InputTokens: 10, OutputTokens: 3, Cost: &cost}},
	)).Think(t.Context(), step)
	require.NoError(t, err)
	require.Equal(t, think.Reply{
		Blocks: []think.Block{
			{Text: `Let me "look".`},
			{Call: &think.Call{ID: "c1", Name: "berth_lookup", Input: topics.Raw(`{"at":"18:00"}`)}},
			{Call: &think.Call{ID: "c2", Name: "clock"}},
			{Text: "And"},
			{Text: "so on."},
		},
		InputTokens: 10, OutputTokens: 3, Cost: &cost,
	}, reply)
	events, result := eventsOf(t, to.all())
	require.Equal(t, []string{
		`{"type":"thought_start","data":{"type":"thought_start","id":"reason-0"}}`,
		`{"type":"thought_delta","data":{"type":"thought_delta","id":"reason-0","delta":"hm"}}`,
		`{"type":"thought_end","data":{"type":"thought_end","id":"reason-0"}}`,
		`{"type":"message_start","data":{"type":"message_start","id":"msg-1"}}`,
		`{"type":"message_delta","data":{"type":"message_delta","id":"msg-1","delta":"Let me \"look\"."}}`,
		`{"type":"message_end","data":{"type":"message_end","id":"msg-1"}}`,
		`{"type":"tool_call","data":{"type":"tool_call","id":"c1","name":"berth_lookup","input":{"at":"18:00"}}}`,
		`{"type":"tool_call","data":{"type":"tool_call","id":"c2","name":"clock","input":{}}}`,
		`{"type":"message_start","data":{"type":"message_start","id":"msg-2"}}`,
		`{"type":"message_delta","data":{"type":"message_delta","id":"msg-2","delta":"And"}}`,
		`{"type":"message_end","data":{"type":"message_end","id":"msg-2"}}`,
		`{"type":"message_start","data":{"type":"message_start","id":"msg-3"}}`,
		`{"type":"message_delta","data":{"type":"message_delta","id":"msg-3","delta":"so on."}}`,
		`{"type":"message_end","data":{"type":"message_end","id":"msg-3"}}`,
	}, events)
	require.True(t, result.OK)
	require.Equal(t, "tool_use", *result.StopReason)
	require.JSONEq(t, `{"input":10,"output":3,"total":13,"cost":0.25}`, string(result.Usage))
	require.Equal(t, "turn/1/enriched/0/event/1781956800000/1", string(to.all()[0].Headers[topics.HeaderID]))
}

func TestCallEndsItsStreamOnce(t *testing.T) {
	text := think.Delta{Text: "Ber"}
	late, cancelLate := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancelLate()
	ended, end := context.WithCancelCause(t.Context())
	end(think.ErrTurnEnded)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	failed := errors.New("anthropic: status 529 (overloaded_error)")
	again := func(err error) bool { return errors.Is(err, failed) }
	panics := think.StreamFunc(func(context.Context, think.Step) iter.Seq2[think.Delta, error] {
		return func(yield func(think.Delta, error) bool) {
			yield(text, nil)
			panic("secret")
		}
	})
	badCall := think.Delta{Call: &think.Call{ID: "c", Name: "n", Input: topics.Raw("[")}}
	for name, c := range map[string]struct {
		ctx     context.Context
		model   think.StreamFunc
		retried func(error) bool
		want    string // state, stop reason and error; "open" without a terminal record
	}{
		"complete":      {t.Context(), deltas(nil, text), nil, "complete end_turn "},
		"max_tokens":    {t.Context(), deltas(nil, text, think.Delta{Stop: "max_tokens"}), nil, "complete max_tokens "},
		"failed":        {t.Context(), deltas(failed, text), nil, "failed  anthropic: status 529 (overloaded_error)"},
		"bad call":      {t.Context(), deltas(nil, text, badCall), nil, "failed  think: the response cannot be encoded as a record"},
		"panic":         {t.Context(), panics, nil, "failed  think: the model panicked"},
		"deadline":      {late, deltas(context.DeadlineExceeded, text), nil, "failed  think: the model did not answer in time"},
		"cancelled":     {ended, deltas(context.Canceled, text), nil, "complete cancelled "},
		"worker stops":  {stopped, deltas(context.Canceled, text), nil, "open"},
		"retried":       {t.Context(), deltas(failed, text), again, "open"},
		"not retried":   {t.Context(), deltas(errors.New("no"), text), again, "failed  no"},
		"ctx ends late": {stopped, deltas(nil, text), nil, "complete end_turn "},
	} {
		t.Run(name, func(t *testing.T) {
			to, s := new(paper), step
			s.Retried = c.retried
			reply, err := streaming(t, to, c.model).Think(c.ctx, s)
			_, result := eventsOf(t, to.all())
			if result == nil {
				require.Equal(t, "open", c.want)
				require.Error(t, err)
				return
			}
			state, reason, cause := "complete", "", ""
			if !result.OK {
				state, cause = "failed", *result.Error
			}
			if result.StopReason != nil {
				reason = *result.StopReason
			}
			require.Equal(t, c.want, strings.Join([]string{state, reason, cause}, " "))
			if err == nil {
				require.Equal(t, "Ber", reply.Blocks[0].Text)
			}
		})
	}
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
	events, _ := eventsOf(t, to.all())
	require.Contains(t, events[1], `"delta":"a`+strings.Repeat("b", 1000)+`"`)
}

func TestLongTextIsSeveralEvents(t *testing.T) {
	to, text := new(paper), strings.Repeat("ü", 40_000)
	_, err := streaming(t, to, deltas(nil, think.Delta{Text: text})).Think(t.Context(), step)
	require.NoError(t, err)
	events, _ := eventsOf(t, to.all())
	require.Contains(t, events[1], `"delta":"`+text+`"`)
	require.Len(t, to.all(), 8, "start, five pieces of up to 16 KiB, end, and the terminal record")
}

func TestEventThatIsTooLargeFailsTheStreamAndNotTheStep(t *testing.T) {
	to := new(paper)
	to.refuse = func(r processors.Outbound) error {
		if strings.Contains(string(r.Value), "tool_call") {
			return processors.ErrTooLarge
		}
		return nil
	}
	reply, err := streaming(t, to, deltas(nil, think.Delta{Text: "a"},
		think.Delta{Call: &think.Call{ID: "c", Name: "n"}}, think.Delta{Text: "b"})).Think(t.Context(), step)
	require.NoError(t, err)
	require.Len(t, reply.Blocks, 3)
	seen, kept := map[string]bool{}, []processors.Outbound(nil)
	for _, r := range to.all() { // the events before the large one can be published twice
		if id := string(r.Headers[topics.HeaderID]); !seen[id] {
			seen[id], kept = true, append(kept, r)
		}
	}
	events, result := eventsOf(t, kept)
	require.Len(t, events, 3)
	require.False(t, result.OK)
	require.Equal(t, "think: an event does not fit into a record", *result.Error)
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
	_, result := eventsOf(t, to.all())
	require.True(t, result.OK)
}

func TestTerminalRecordIsRetriedAfterTheDeadline(t *testing.T) {
	to, tries := new(paper), 0
	to.refuse = func(r processors.Outbound) error {
		if tries++; tries == 1 {
			return errors.New("brokers are away")
		}
		return nil
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	_, err := streaming(t, to, deltas(context.DeadlineExceeded)).Think(ctx, step)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, result := eventsOf(t, to.all())
	require.NotNil(t, result)
	require.False(t, result.OK)
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
	b := newBench(t, model.Think)
	b.handle(record(question))
	published := len(events.all())
	b.handle(record(question))
	require.Len(t, b.paper.all(), 2)
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
