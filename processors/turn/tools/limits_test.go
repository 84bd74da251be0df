package tools_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// One tool hangs and ignores its context; more of its calls wait than fit into the window.
func TestHungToolDelaysNoCallOfOtherTools(t *testing.T) {
	t.Parallel()
	for _, mode := range []worker.Mode{worker.ShareGroup, worker.ConsumerGroup} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			b, err := embedded.Start(embedded.Config{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, b.Close()) })
			catalog, err := topics.For("pilot")
			require.NoError(t, err)
			require.NoError(t, topics.EnsureCluster(t.Context(), b.Addrs(), kafka.Config(), catalog))
			to, err := processors.NewPublisher(b.Addrs())
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, to.Close()) })
			for i := range 11 {
				name := "hung"
				if i >= 9 {
					name = "quick"
				}
				r := call(fmt.Sprint("t", i), name, "{}")
				require.NoError(t, to.Publish(t.Context(), processors.Outbound{
					Topic: r.Topic, Key: string(r.Key), Value: r.Value,
				}))
			}
			release, quick := make(chan struct{}), make(chan struct{}, 2)
			w, err := tools.NewWorker("pilot", to, map[string]tools.Func{
				"hung":  func(context.Context, tools.Call) (any, error) { <-release; return nil, nil },
				"quick": func(context.Context, tools.Call) (any, error) { quick <- struct{}{}; return nil, nil },
			}, tools.Config{Config: worker.Config{Concurrency: 2, Waiting: 8, Mode: mode}})
			require.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			ran := make(chan error, 1)
			go func() { ran <- w.Run(ctx, b.Addrs()) }()
			t.Cleanup(func() { stop(); require.NoError(t, <-ran) })
			t.Cleanup(func() { close(release) })
			for range 2 {
				select {
				case <-quick:
				case <-time.After(waitLimit):
					t.Fatal("the calls of the other tool wait for the one that hangs")
				}
			}
		})
	}
}

func TestLimitsOfToolsAndTenantsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		began := make(chan string, 20)
		tool := func(_ context.Context, c tools.Call) (any, error) {
			began <- c.Name
			<-release
			return nil, nil
		}
		var asked atomic.Int64
		l := worker.NewLimiter()
		b := newBench(t, map[string]tools.Func{"one": tool, "two": tool}, tools.Config{
			Config: worker.Config{Concurrency: 3, Limiter: l}, ToolConcurrency: map[string]int{"two": 1}, Limits: []tools.Limit{{
				Name: "tenant", Concurrency: 2, Key: func(c tools.Call) string { asked.Add(1); return c.SessionID },
			}},
		})
		done := make(chan error, 6)
		handle := func(id, name string) {
			go func() { done <- b.worker.Handle(t.Context(), call(id, name, "{}")) }()
		}
		handle("t0", "two")
		require.Equal(t, "two", <-began)
		handle("t1", "two") // the tool has one place
		handle("t2", "one")
		require.Equal(t, "one", <-began)
		handle("t3", "one") // the tenant has two
		synctest.Wait()
		require.EqualValues(t, 4, asked.Load())
		require.Empty(t, began)
		close(release)
		for range 4 {
			require.NoError(t, <-done)
		}
	})
}

func TestCallThatWaitsForALimitIsAnsweredAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, map[string]tools.Func{"one": returning("late", nil)}, tools.Config{
			Timeout: 1050 * time.Millisecond, Limits: []tools.Limit{{Name: "rate", PerMinute: 1, Burst: 1}},
		})
		b.handle(call("t0", "one", "{}"))
		b.handle(call("t1", "one", "{}"))
		lines := b.paper.lines()
		require.Len(t, lines, 2)
		require.Contains(t, lines[0], "late")
		require.Contains(t, lines[1], `"reason":"timeout"`)
	})
}

func TestInvalidLimitsOfToolsAreRejected(t *testing.T) {
	_, err := tools.NewWorker("pilot", &paper{}, map[string]tools.Func{"one": returning(nil, nil)},
		tools.Config{ToolConcurrency: map[string]int{"one": 0, "other": 1}, Limits: []tools.Limit{{}}})
	require.ErrorIs(t, err, tools.ErrConfig)
	for _, text := range []string{`"one" is 0`, `"other"`, "Limits"} {
		require.ErrorContains(t, err, text)
	}
}
