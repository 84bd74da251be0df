package think_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

func TestModelGetsTheWholeConversation(t *testing.T) {
	var got think.Step
	b := newBench(t, func(_ context.Context, s think.Step) (think.Reply, error) {
		got = s
		return think.Say("N4."), nil
	}, think.Config{Timeout: time.Minute})
	b.handle(record(question))
	require.Equal(t, []string{"pilot", "s", "mira", "likes N4", "turn/1/enriched/0"},
		[]string{got.Agent, got.SessionID, *got.UserID, got.Memoir, got.Key})
	require.Len(t, got.Messages, 3, "null elements are no messages")
	require.Equal(t, "Which berth?", topics.Text(got.Input().Content))
	require.InDelta(t, 1.5, *got.Cost, 0)
	require.Equal(t, noon.Add(59*time.Second), got.Deadline)
}

func TestEphemeralPromptIsPassedToTheModelAndIsNotInTheResponse(t *testing.T) {
	var got []string
	b := newBench(t, func(_ context.Context, s think.Step) (think.Reply, error) {
		got = append(got, s.EphemeralPrompt)
		return think.Say("N4."), nil
	}, think.Config{})
	b.handle(record(`{"history":[],"latest_input":{"role":"user","content":"?"},"ephemeral_prompt":"In one line."}`))
	next := record(`{"history":[],"latest_input":{"role":"user","content":"?"}}`)
	next.Headers[0].Value = []byte("turn/2/enriched/0")
	b.handle(next)
	require.Equal(t, []string{"In one line.", ""}, got)
	for _, r := range b.paper.all() {
		require.NotContains(t, string(r.Value), "In one line.")
	}
}

func TestResponseCopiesHistoryAndInput(t *testing.T) {
	cost := 0.25
	b := newBench(t, func(context.Context, think.Step) (think.Reply, error) {
		return think.Reply{
			Blocks:      []think.Block{{Text: "N4."}, {Text: " "}, {Text: "Or N5."}},
			InputTokens: 10, OutputTokens: 3, Cost: &cost,
		}, nil
	}, think.Config{})
	b.handle(record(question))
	require.JSONEq(t, `{"session_id":"s","user_id":"mira","total_session_cost":1.75,"previous_session_cost":1.5,
		"think_cost":0.25,"think_input_tokens":10,"think_output_tokens":3,
		"previous_messages":[{"role":"user","content":"Hi","n":1.10},null,{"role":"assistant","content":"Hello."}],
		"last_input_message":{"session_id":"s","role":"user","content":"Which berth?","timestamp":"t","extra":true},
		"last_input_response":[
			{"session_id":"s","user_id":"mira","role":"assistant","content":"N4.","timestamp":"2026-06-20T12:00:00Z",
				"metadata":{"agent":"pilot"}},
			{"session_id":"s","user_id":"mira","role":"assistant","content":"Or N5.","timestamp":"2026-06-20T12:00:00Z",
				"metadata":{"agent":"pilot"}}],
		"tool_uses":null,"end_turn":true,"compaction":false,"compaction_input_tokens":0,"compaction_output_tokens":0,
		"compaction_cost":0.0,"timestamp":"2026-06-20T12:00:00Z"}`, string(b.paper.all()[0].Value))
	require.Contains(t, string(b.paper.all()[0].Value), `"n":1.10`, "byte for byte")
	require.Equal(t, "turn/1/enriched/0/think", string(b.paper.all()[0].Headers[topics.HeaderID]))
}

func TestCallsAreInTheResponseAndInItsMessage(t *testing.T) {
	b := newBench(t, func(context.Context, think.Step) (think.Reply, error) {
		return think.Reply{Blocks: []think.Block{
			{Text: "Let me \"look\"."},
			{Call: &think.Call{ID: "c1", Name: "berth_lookup", Input: topics.Raw(`{"at":"18:00"}`)}},
			{Call: &think.Call{ID: "c2", Name: "clock"}},
		}}, nil
	}, think.Config{})
	b.handle(record(`{"history":[],"latest_input":{"role":"user","content":"?"}}`))
	r := b.response()
	require.False(t, r.EndTurn)
	require.Nil(t, r.ThinkCost, "no prices, no cost")
	require.Zero(t, *r.TotalSessionCost)
	require.Equal(t, "[]", string(r.PreviousMessages))
	require.Len(t, r.ToolUses, 2)
	require.Equal(t, []string{"c1", "berth_lookup", "berth_lookup", `{"at":"18:00"}`, "s"}, []string{
		*r.ToolUses[0].ToolUseID, *r.ToolUses[0].Name, *r.ToolUses[0].ToolID, string(r.ToolUses[0].Input),
		*r.ToolUses[0].SessionID,
	})
	require.Equal(t, int64(2), r.ToolUses[1].TotalTools)
	for m, err := range topics.Messages(r.LastInputResponse) {
		require.NoError(t, err)
		require.JSONEq(t, `[{"type":"text","text":"Let me \"look\"."},
			{"type":"tool_use","id":"c1","name":"berth_lookup","input":{"at":"18:00"}},
			{"type":"tool_use","id":"c2","name":"clock","input":{}}]`, string(m.Content))
	}
}

func TestEveryFailureIsADeadLetterThatEndsTheTurn(t *testing.T) {
	for name, c := range map[string]struct {
		model  think.Func
		record processors.Inbound
		reason string
	}{
		"model": {func(context.Context, think.Step) (think.Reply, error) {
			return think.Reply{}, errors.New("claude: status 529 (overloaded_error)")
		}, record(question), "claude: status 529 (overloaded_error)"},
		"panic": {
			func(context.Context, think.Step) (think.Reply, error) { panic("secret") }, record(question),
			"think: the model panicked",
		},
		"input is no JSON": {func(context.Context, think.Step) (think.Reply, error) {
			return think.Reply{Blocks: []think.Block{{Call: &think.Call{ID: "c", Name: "n", Input: topics.Raw("{")}}}}, nil
		}, record(question), "think: the response cannot be encoded as a record"},
		"no JSON":  {saying("x"), record("{"), "think: record is not an enriched message"},
		"no input": {saying("x"), record(`{"history":[]}`), "think: latest_input of the enriched message is not a message"},
		"history": {
			saying("x"), record(`{"history":[{"content":"x","role":{}}],"latest_input":{"role":"user"}}`),
			"think: history has an element that is not a message",
		},
		"no key": {saying("x"), func() processors.Inbound {
			r := record(question)
			r.Key = nil
			return r
		}(), "think: record has no key"},
		"late": {saying("x"), func() processors.Inbound {
			r := record(question)
			r.Timestamp = noon.Add(-10 * time.Minute)
			return r
		}(), "think: the model did not answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.model, think.Config{})
			b.handle(c.record)
			out, reason := b.failure()
			require.Equal(t, c.reason, reason)
			require.Equal(t, string(c.record.Key), out.Key)
			require.Equal(t, c.record.Value, out.Value)
			require.Equal(t, []string{"pilot-enriched-message-input", "2", "7", "turn/1/enriched/0/failure"}, []string{
				string(out.Headers[topics.HeaderErrorSourceTopic]), string(out.Headers[topics.HeaderErrorSourcePartition]),
				string(out.Headers[topics.HeaderErrorSourceOffset]), string(out.Headers[topics.HeaderID]),
			})
			if name == "late" {
				require.Equal(t, "deadline", string(out.Headers["turntable.reason"]))
			} else {
				require.NotContains(t, out.Headers, "turntable.reason")
			}
		})
	}
}

func TestReasonOfAFailureIsBounded(t *testing.T) {
	b := newBench(t, func(context.Context, think.Step) (think.Reply, error) {
		return think.Reply{}, errors.New("\xff" + strings.Repeat("ü", 1<<20))
	}, think.Config{})
	b.handle(record(question))
	_, reason := b.failure()
	require.LessOrEqual(t, len(reason), 4<<10)
	require.True(t, strings.HasPrefix(reason, "?ü") && strings.HasSuffix(reason, "ü"))
}

func TestModelThatExceedsItsDeadlineFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time stands still until the model waits
		b := newBench(t, func(ctx context.Context, _ think.Step) (think.Reply, error) {
			<-ctx.Done()
			return think.Reply{}, ctx.Err()
		}, think.Config{Timeout: time.Second + time.Millisecond})
		b.handle(record(question))
		out, reason := b.failure()
		require.Equal(t, "think: the model did not answer in time", reason)
		require.Equal(t, "deadline", string(out.Headers["turntable.reason"]))
	})
}

func TestResponseThatIsTooLargeIsAFailure(t *testing.T) {
	b := newBench(t, saying(strings.Repeat("x", 100)), think.Config{})
	b.paper.refuse = func(r processors.Outbound) error {
		if r.Topic == "pilot-think-request-response" || len(r.Value) > 250 {
			return processors.ErrTooLarge
		}
		return nil
	}
	b.handle(record(question))
	out, reason := b.failure()
	require.Equal(t, "think: the response does not fit into a record", reason)
	require.Contains(t, string(out.Value), `"originalValue":null`, "at last without the input")
	require.Contains(t, string(out.Value), `"error":"think: the response does not fit into a record"`)
}

func TestStoppedStepIsRedelivered(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	b := newBench(t, func(ctx context.Context, _ think.Step) (think.Reply, error) {
		stop()
		<-ctx.Done()
		return think.Reply{}, ctx.Err()
	}, think.Config{})
	require.ErrorIs(t, b.worker.Handle(ctx, record(question)), context.Canceled)
	require.Empty(t, b.paper.all())
}

func TestPublishIsRetriedUntilAcknowledged(t *testing.T) {
	b := newBench(t, saying("N4."), think.Config{})
	var refused atomic.Int64
	b.paper.refuse = func(processors.Outbound) error {
		if refused.Add(1) == 1 {
			return errors.New("brokers are away")
		}
		return nil
	}
	b.handle(record(question))
	require.True(t, b.response().EndTurn)
}

func TestTombstoneIsIgnored(t *testing.T) {
	b := newBench(t, saying("x"), think.Config{})
	r := record("")
	r.Value = nil
	b.handle(r)
	require.Empty(t, b.paper.all())
}

func TestLogsQuoteNothingOfTheConversation(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	b := newBench(t, func(context.Context, think.Step) (think.Reply, error) {
		return think.Reply{}, errors.New("claude: status 401 (authentication_error)")
	}, think.Config{Config: worker.Config{Logger: zap.New(core)}})
	b.handle(record(question))
	require.Equal(t, 1, logs.Len())
	require.Equal(t, "claude: status 401 (authentication_error)", logs.All()[0].ContextMap()["reason"])
	for _, e := range logs.All() {
		require.NotContains(t, e.ContextMap(), "berth")
	}
}

func TestInvalidFieldsAreReportedTogether(t *testing.T) {
	_, err := think.New("pilot", nil, nil, think.Config{
		Config: worker.Config{
			Concurrency: -1, ReadAhead: -1, Grace: -1, Drop: true,
		}, Timeout: -1, RememberFor: -1, RememberCount: -1, RememberBytes: -1,
	})
	require.ErrorIs(t, err, think.ErrConfig)
	for _, name := range []string{
		"Concurrency", "ReadAhead", "Timeout", "Grace", "Drop", "RememberFor", "RememberCount", "RememberBytes",
		"the publisher is nil", "the model is nil",
	} {
		require.ErrorContains(t, err, name)
	}
	_, err = think.New(" ", new(paper), saying("x"), think.Config{})
	require.ErrorIs(t, err, topics.ErrAgent)
	w, err := think.New("pilot", new(paper), saying("x"), think.Config{})
	require.NoError(t, err)
	require.ErrorIs(t, w.Run(t.Context(), nil), think.ErrConfig)
}

// A foreign record may have a key or an id that leaves no room for a failure. Redelivery would repeat the call of the model.
func TestStepWhoseFailureIsTooLargeIsSkipped(t *testing.T) {
	b := newBench(t, saying("hi"), think.Config{})
	b.paper.refuse = func(processors.Outbound) error { return processors.ErrTooLarge }
	b.handle(record(question))
	b.handle(record("{"))
	require.Empty(t, b.paper.all())
}
