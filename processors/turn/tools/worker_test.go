package tools_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

func TestEveryOutcomeOfAToolIsAResult(t *testing.T) {
	type berth struct {
		Berth string `json:"berth"`
	}
	var deep any = "x"
	for range 999 {
		deep = []any{deep}
	}
	const notJSON = `{"error":"what the tool returned is no JSON","reason":"invalid_result"}`
	for name, c := range map[string]struct {
		tool           tools.Func
		result, status string
	}{
		"struct":       {returning(berth{"N4"}, nil), `{"berth":"N4"}`, "success"},
		"map":          {returning(map[string]any{"b": 1, "a": nil}, nil), `{"a":null,"b":1}`, "success"},
		"raw object":   {returning(topics.Raw(`{"a" : 1.10}`), nil), `{"a":1.10}`, "success"},
		"raw array":    {returning(topics.Raw(` [1]`), nil), `{"result":[1]}`, "success"},
		"text":         {returning("N4", nil), `{"result":"N4"}`, "success"},
		"number":       {returning(7, nil), `{"result":7}`, "success"},
		"list":         {returning([]string{"a"}, nil), `{"result":["a"]}`, "success"},
		"nil":          {returning(nil, nil), `{}`, "success"},
		"raw null":     {returning(topics.Raw("null"), nil), `{}`, "success"},
		"no raw":       {returning(topics.Raw(nil), nil), `{}`, "success"},
		"error":        {returning("x", errors.New(`no "a"`)), `{"error":"no \"a\"","reason":"tool_failed"}`, "error"},
		"pending fail": {returning(tools.Pending{}, errors.New("no")), `{"error":"no","reason":"tool_failed"}`, "error"},
		"not JSON":     {returning(topics.Raw(`{`), nil), notJSON, "error"},
		"not UTF-8":    {returning(topics.Raw("\"\xff\""), nil), notJSON, "error"},
		"not a value":  {returning(func() {}, nil), notJSON, "error"},
		"infinite":     {returning(math.Inf(1), nil), notJSON, "error"},
		"too deep": {
			returning(deep, nil), `{"error":"what the tool returned is nested too deep","reason":"invalid_result"}`, "error",
		},
		"panic": {
			func(context.Context, tools.Call) (any, error) { panic("secret") },
			`{"error":"the tool panicked","reason":"tool_failed"}`, "error",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, map[string]tools.Func{"berth": c.tool}, tools.Config{})
			b.handle(call("t1", "berth", "{}"))
			require.Equal(t, []string{result("t1", "berth", c.result, c.status)}, b.paper.lines())
		})
	}
}

func TestToolSeesTheOriginAndTheDepthOfItsTurn(t *testing.T) {
	var got []tools.Call
	b := newBench(t, map[string]tools.Func{"berth": func(_ context.Context, c tools.Call) (any, error) {
		got = append(got, c)
		return nil, nil
	}}, tools.Config{})
	b.handle(call("t1", "berth", `{"origin":{"channel":"forged"},"delegation_depth":9}`))
	of := call("t2", "berth", `{}`)
	origin := topics.EncodeOrigin(topics.Origin{Channel: "slack", Account: "main", Recipient: "C1", User: "U1"})
	of.Value = append(of.Value[:len(of.Value)-1:len(of.Value)-1], `,"origin":`+string(origin)+`,"delegation_depth":2}`...)
	b.handle(of)
	require.Len(t, got, 2)
	require.Nil(t, got[0].Origin, "the model cannot set it")
	require.Zero(t, got[0].Depth)
	require.Equal(t, origin, got[1].Origin)
	require.EqualValues(t, 2, got[1].Depth)
}

func TestToolGetsTheCallOfTheModel(t *testing.T) {
	var got tools.Call
	var input struct {
		At string `json:"at"`
	}
	b := newBench(t, map[string]tools.Func{"berth": func(_ context.Context, c tools.Call) (any, error) {
		got = c
		return nil, c.Bind(&input)
	}}, tools.Config{Timeout: time.Minute, TokenSecret: secret, TokenTTL: time.Hour})
	b.handle(call("t1", "berth", `{"at":"18:00"}`))
	require.Equal(t, "18:00", input.At)
	require.Equal(t, []string{"pilot", "s", "t1", "berth"}, []string{got.Agent, got.SessionID, got.ToolUseID, got.Name})
	require.Equal(t, noon.Add(59*time.Second), got.Deadline)
	require.Equal(t, "turn/1/tool-use/t1", got.Key())

	minted, err := got.Token()
	require.NoError(t, err)
	again, err := got.Token()
	require.NoError(t, err)
	require.Equal(t, minted, again)
	claims := claimsAt(t, minted, noon)
	require.Equal(t, []any{"s", "t1", "berth", "berth", 2}, []any{
		claims.SessionID, claims.ToolUseID, *claims.Name, *claims.ToolID, claims.TotalTools,
	})
	require.Equal(t, got.Key(), claims.CallID)
	require.Equal(t, noon.Add(-time.Second).Unix(), claims.IssuedAt.Unix())
	require.Equal(t, time.Hour, claims.Expires.Sub(claims.IssuedAt))

	b.handle(call("t2", "berth", `{"at":7,"secret":1}`))
	require.Contains(t, b.paper.lines()[1], `does not fit *struct`)
	require.NotContains(t, b.paper.lines()[1], "secret")
	_, err = tools.Call{}.Token()
	require.ErrorIs(t, err, tools.ErrNoSecret)
}

func TestCallsToUnknownToolsAreAnsweredOrIgnored(t *testing.T) {
	b := newBench(t, map[string]tools.Func{"berth": returning(1, nil)}, tools.Config{})
	b.handle(call("t1", "tide", "{}"))
	require.Equal(t, []string{
		result("t1", "tide", `{"error":"there is no tool of this name","reason":"unknown_tool"}`, "error"),
	}, b.paper.lines())
	b = newBench(t, map[string]tools.Func{"berth": returning(1, nil)}, tools.Config{IgnoreUnknown: true})
	b.handle(call("t1", "tide", "{}"))
	require.Empty(t, b.paper.lines())
}

func TestDeadlineComesFromTheCall(t *testing.T) {
	var left time.Duration
	b := newBench(t, map[string]tools.Func{"berth": func(ctx context.Context, _ tools.Call) (any, error) {
		at, _ := ctx.Deadline()
		left = time.Until(at)
		return nil, nil
	}}, tools.Config{Timeout: time.Minute})
	b.handle(call("t1", "berth", "{}"))
	require.InDelta(t, 59, left.Seconds(), 5)

	b.clock.Advance(time.Minute)
	left = 0
	b.handle(call("t2", "berth", "{}"))
	require.Zero(t, left)
	require.Contains(t, b.paper.lines()[1], `"reason":"timeout"`)
}

func TestCallIsAnsweredAtItsDeadlineEvenIfTheToolIgnoresIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, returned := make(chan struct{}), make(chan struct{})
		for name, tool := range map[string]tools.Func{
			"heeds": func(ctx context.Context, _ tools.Call) (any, error) { <-ctx.Done(); return nil, ctx.Err() },
			"ignores": func(context.Context, tools.Call) (any, error) {
				<-release
				close(returned)
				return "late", nil
			},
		} {
			b := newBench(t, map[string]tools.Func{"berth": tool}, tools.Config{Timeout: time.Second + 50*time.Millisecond})
			b.handle(call("t1", "berth", "{}"))
			require.Len(t, b.paper.lines(), 1, name)
			require.Contains(t, b.paper.lines()[0], `"reason":"timeout"},"latency_ms"`, name)
		}
		close(release)
		<-returned
	})
}

func TestStoppedCallHasNoResultAndIsRedelivered(t *testing.T) {
	var calls atomic.Int32
	begun := make(chan struct{}, 1)
	b := newBench(t, map[string]tools.Func{"berth": func(ctx context.Context, _ tools.Call) (any, error) {
		if calls.Add(1) == 1 {
			begun <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return "N4", nil
	}}, tools.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.worker.Handle(ctx, call("t1", "berth", "{}")) }()
	<-begun
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Empty(t, b.paper.lines())
	b.handle(call("t1", "berth", "{}"))
	require.Equal(t, []string{result("t1", "berth", `{"result":"N4"}`, "success")}, b.paper.lines())
}

func TestConcurrencyIsBoundedPerTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var now, most atomic.Int32
		b := newBench(t, map[string]tools.Func{
			"slow": func(context.Context, tools.Call) (any, error) {
				most.Store(max(most.Load(), now.Add(1)))
				<-release
				now.Add(-1)
				return nil, nil
			},
			"quick": returning(1, nil),
		}, tools.Config{Config: worker.Config{Concurrency: 2}})
		ended := make(chan error, 5)
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			go func() { ended <- b.worker.Handle(t.Context(), call(id, "slow", "{}")) }()
		}
		synctest.Wait()
		require.EqualValues(t, 2, now.Load())
		b.handle(call("q", "quick", "{}"))
		require.Len(t, b.paper.lines(), 1)
		close(release)
		for range 5 {
			require.NoError(t, <-ended)
		}
		require.EqualValues(t, 2, most.Load())
	})
}

func TestPublishIsRetriedUntilAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused atomic.Int32
		b := newBench(t, map[string]tools.Func{"berth": returning("N4", nil)}, tools.Config{})
		b.paper.refuse = func(processors.Outbound) error {
			if refused.Add(1) < 3 {
				return errors.New("no leader")
			}
			return nil
		}
		b.handle(call("t1", "berth", "{}"))
		require.Len(t, b.paper.lines(), 1)

		b.paper.refuse = func(processors.Outbound) error { return processors.ErrPublisherClosed }
		require.ErrorIs(t, b.worker.Handle(t.Context(), call("t2", "berth", "{}")), processors.ErrPublisherClosed)
	})
}

func TestResultThatIsTooLargeBecomesAnError(t *testing.T) {
	b := newBench(t, map[string]tools.Func{"berth": returning(strings.Repeat("x", 1000), nil)}, tools.Config{})
	b.paper.refuse = func(r processors.Outbound) error {
		if len(r.Value) > 1000 {
			return processors.ErrTooLarge
		}
		return nil
	}
	b.handle(call("t1", "berth", "{}"))
	require.Equal(t, []string{result("t1", "berth",
		`{"error":"the result of 1013 bytes does not fit into a record","reason":"too_large"}`, "error")}, b.paper.lines())
}

func TestInvalidRecordsAreDeadLettered(t *testing.T) {
	b := newBench(t, map[string]tools.Func{"berth": returning(nil, nil)}, tools.Config{})
	for _, value := range []string{"{", "[]", "null", "{}", `{"tool_use_id":" ","name":"berth"}`, `{"tool_use_id":"t"}`} {
		r := call("t", "berth", "{}")
		r.Value = []byte(value)
		b.handle(r)
	}
	keyless := call("t", "berth", "{}")
	keyless.Key = nil
	b.handle(keyless)
	tombstone := call("t", "berth", "{}")
	tombstone.Value = nil
	b.handle(tombstone)
	require.Len(t, b.paper.records, 7)
	for _, r := range b.paper.records {
		require.Equal(t, "pilot-tool-use-dlq", r.Topic)
		require.Equal(t, "7", string(r.Headers["error.source.offset"]))
		require.Equal(t, "pilot-tool-use", string(r.Headers["error.source.topic"]))
		require.Equal(t, "pilot-tool-execution", string(r.Headers["error.group"]))
		require.NotEmpty(t, r.Headers["error.reason"])
	}
}

func TestInvalidFieldsAreReportedTogether(t *testing.T) {
	_, err := tools.NewWorker("pilot", nil, map[string]tools.Func{"": returning(nil, nil), "x": nil}, tools.Config{
		Config: worker.Config{Concurrency: -1, Grace: -1, Drop: true}, Timeout: -1, TokenSecret: "short", RememberFor: -1,
	})
	require.ErrorIs(t, err, tools.ErrConfig)
	for _, what := range []string{
		"Concurrency", "Timeout", "Grace", "Drop", "TokenSecret", "TokenTTL", "RememberFor", "publisher", `tool ""`, `tool "x"`,
	} {
		require.Contains(t, err.Error(), what)
	}
	_, err = tools.NewWorker("pilot", &paper{}, nil, tools.Config{})
	require.ErrorIs(t, err, tools.ErrConfig)
	_, err = tools.NewWorker("no agent", &paper{}, nil, tools.Config{})
	require.ErrorIs(t, err, tools.ErrConfig)
	b := newBench(t, map[string]tools.Func{"x": returning(nil, nil)}, tools.Config{Config: worker.Config{Lock: -1}})
	require.ErrorIs(t, b.worker.Run(t.Context(), []string{"b:1"}), tools.ErrConfig)
}
