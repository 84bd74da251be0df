package tools_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/processors/turn/tools"
)

// counted is a tool that counts its calls.
func counted(calls *atomic.Int64, tool tools.Func) map[string]tools.Func {
	return map[string]tools.Func{"berth": func(ctx context.Context, c tools.Call) (any, error) {
		calls.Add(1)
		return tool(ctx, c)
	}}
}

// repeatOf is the record that a turn writes when it makes the call again: the same id at another offset.
func repeatOf(r processors.Inbound) processors.Inbound {
	r.Offset++
	r.Timestamp = r.Timestamp.Add(time.Second)
	return r
}

func TestRepeatOfASettledCallPublishesTheSameResultAgain(t *testing.T) {
	for name, c := range map[string]struct {
		tool   tools.Func
		called string
		config tools.Config
		limit  int // of a record's value, in bytes
		calls  int64
	}{
		"success":   {tool: returning("N4", nil), called: "berth", calls: 1},
		"error":     {tool: returning(nil, errors.New("no crane")), called: "berth", calls: 1},
		"panic":     {tool: func(context.Context, tools.Call) (any, error) { panic("x") }, called: "berth", calls: 1},
		"too large": {tool: returning(strings.Repeat("x", 1000), nil), called: "berth", limit: 1000, calls: 1},
		"unknown":   {tool: returning("N4", nil), called: "tide"},
		"late":      {tool: returning("N4", nil), called: "berth", config: tools.Config{Timeout: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			b := newBench(t, counted(&calls, c.tool), c.config)
			b.paper.refuse = func(r processors.Outbound) error {
				if c.limit > 0 && len(r.Value) > c.limit {
					return processors.ErrTooLarge
				}
				return nil
			}
			b.handle(call("t1", c.called, "{}"))
			b.clock.Advance(time.Minute)
			b.handle(repeatOf(call("t1", c.called, "{}")))
			b.handle(repeatOf(repeatOf(call("t1", c.called, "{}"))))
			all := b.paper.records
			require.Len(t, all, 3)
			require.Equal(t, "pilot-tool-use-result", all[0].Topic)
			require.Equal(t, all[0], all[1])
			require.Equal(t, all[0], all[2])
			require.Equal(t, c.calls, calls.Load())
		})
	}
}

// A turn that lost its row in a crash writes a call once more, which another worker had made.
func TestCallThatItsTurnWritesAgainIsNotMadeAgain(t *testing.T) {
	b, err := embedded.Start(embedded.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	const out = "pilot-tool-use-result"
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.ConsumeTopics(out))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	_, err = kadm.NewClient(client).CreateTopics(t.Context(), 1, 1, nil, "pilot-tool-use", out, "pilot-message-output")
	require.NoError(t, err)
	to, err := processors.NewPublisher(b.Addrs())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, to.Close()) })
	again := call("t1", "berth", "{}")
	require.NoError(t, to.Publish(t.Context(), processors.Outbound{
		Topic: out, Key: "s", Value: []byte("N4"), Headers: goka.Headers{"turntable.id": []byte("turn/1/tool-use/t1/result")},
	}, processors.Outbound{
		Topic: again.Topic, Key: "s", Value: again.Value,
		Headers: goka.Headers{"turntable.id": []byte("turn/1/tool-use/t1"), "turntable.answers-from": []byte("0")},
	}))
	var calls atomic.Int64
	w, err := tools.NewWorker("pilot", to, counted(&calls, returning("N5", nil)), tools.Config{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- w.Run(ctx, b.Addrs()) }()
	var got []*kgo.Record
	for len(got) < 2 {
		got = append(got, client.PollFetches(t.Context()).Records()...)
	}
	cancel()
	require.NoError(t, <-ran)
	require.Equal(t, "N4", string(got[1].Value))
	require.Zero(t, calls.Load())
}

func TestPendingCallRunsOnceAndHasNoResult(t *testing.T) {
	var calls atomic.Int64
	b := newBench(t, counted(&calls, returning(tools.Pending{}, nil)), tools.Config{})
	b.handle(call("t1", "berth", "{}"))
	b.handle(repeatOf(call("t1", "berth", "{}")))
	require.Empty(t, b.paper.lines())
	require.Equal(t, int64(1), calls.Load())
}

func TestReusedToolUseIDIsADifferentCall(t *testing.T) {
	plain := func(input string) processors.Inbound {
		r := call("t1", "berth", input)
		r.Headers = nil
		return r
	}
	later, other := call("t1", "berth", "{}"), call("t1", "berth", "{}")
	later.Headers[0].Value = []byte("turn/2/tool-use/0")
	other.Key = []byte("s2")
	for name, c := range map[string]struct {
		first, second processors.Inbound
		calls         int64
	}{
		"in a later step":             {call("t1", "berth", "{}"), later, 2},
		"in another session":          {call("t1", "berth", "{}"), other, 2},
		"without IDs, another input":  {plain(`{"at":1}`), plain(`{"at":2}`), 2},
		"without IDs, the same input": {plain(`{"at":1}`), repeatOf(plain(`{"at":1}`)), 1},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			b := newBench(t, counted(&calls, func(context.Context, tools.Call) (any, error) { return calls.Load(), nil }), tools.Config{})
			b.handle(c.first)
			b.handle(c.second)
			require.Equal(t, c.calls, calls.Load())
			require.Len(t, b.paper.lines(), 2)
		})
	}
}

func TestRepeatWhileTheToolRunsWaitsForItsResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		release := make(chan struct{})
		b := newBench(t, counted(&calls, func(context.Context, tools.Call) (any, error) {
			<-release
			return "N4", nil
		}), tools.Config{})
		handled := make(chan error, 2)
		go func() { handled <- b.worker.Handle(t.Context(), call("t1", "berth", "{}")) }()
		synctest.Wait()
		go func() { handled <- b.worker.Handle(t.Context(), repeatOf(call("t1", "berth", "{}"))) }()
		synctest.Wait()
		require.Empty(t, handled, "the repeat is not committed before it has a result")
		close(release)
		require.NoError(t, errors.Join(<-handled, <-handled))
		require.Equal(t, int64(1), calls.Load())
		require.Len(t, b.paper.records, 2)
		require.Equal(t, b.paper.records[0], b.paper.records[1])
	})
}

func TestEvictedCallRunsAgainUnderTheSameID(t *testing.T) {
	for name, c := range map[string]struct {
		bounds tools.Config
		others int
		wait   time.Duration
	}{
		"age":   {tools.Config{RememberFor: time.Minute, RememberCount: 100, RememberBytes: 1 << 20}, 0, time.Minute},
		"count": {tools.Config{RememberFor: time.Hour, RememberCount: 2, RememberBytes: 1 << 20}, 2, 0},
		"bytes": {tools.Config{RememberFor: time.Hour, RememberCount: 100, RememberBytes: 4 << 10}, 5, 0},
		"size":  {tools.Config{RememberFor: time.Hour, RememberCount: 100, RememberBytes: 1}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			b := newBench(t, counted(&calls, returning("N4", nil)), c.bounds)
			b.handle(call("t1", "berth", "{}"))
			for n := range c.others {
				b.handle(call("other"+string(rune('0'+n)), "berth", "{}"))
			}
			b.clock.Advance(c.wait)
			b.handle(repeatOf(call("t1", "berth", "{}")))
			require.Equal(t, int64(c.others+2), calls.Load())
			all := b.paper.records
			require.Equal(t, all[0].Headers, all[len(all)-1].Headers)
		})
	}
}

func TestResultThatCouldNotBePublishedIsNotComputedAgain(t *testing.T) {
	var calls atomic.Int64
	b := newBench(t, counted(&calls, returning("N4", nil)), tools.Config{})
	b.paper.refuse = func(processors.Outbound) error { return processors.ErrPublisherClosed }
	require.ErrorIs(t, b.worker.Handle(t.Context(), call("t1", "berth", "{}")), processors.ErrPublisherClosed)
	b.paper.refuse = nil
	b.handle(call("t1", "berth", "{}"))
	require.Len(t, b.paper.lines(), 1)
	require.Equal(t, int64(1), calls.Load())
}
