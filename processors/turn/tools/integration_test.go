package tools_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/responder/respondertest"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
	"github.com/turntable-streams/turntable/processors/worker"
)

func TestToolsOfOneTurnSucceedFailAndAreCalledBack(t *testing.T) {
	both(t, func(t *testing.T, p *pilot) {
		tokens := make(chan string, 1)
		p.work(map[string]tools.Func{
			"berth":  returning(map[string]string{"berth": "N4"}, nil),
			"broken": returning(nil, errors.New("no crane")),
			"ask": func(_ context.Context, c tools.Call) (any, error) {
				minted, err := c.Token()
				tokens <- minted
				return tools.Pending{}, err
			},
		}, tools.Config{})
		p.chat("s", "berth broken ask unknown")
		minted := take(t, tokens)
		for range 2 { // the second is late
			status := p.post(turnhttp.ToolResponsePath, `{"status":"error","error":"asleep"}`, "Authorization", "Bearer "+minted)
			require.Equal(t, 202, status)
		}
		out := take(t, p.outputs)
		require.Nil(t, out.Status)
		require.NotNil(t, out.RequestID)
		require.JSONEq(t, `[
			{"tool_use_id":"berth-0","name":"berth","result":{"berth":"N4"},"status":"success"},
			{"tool_use_id":"broken-1","name":"broken","result":{"error":"no crane","reason":"tool_failed"},"status":"error"},
			{"tool_use_id":"ask-2","name":"ask","result":{"status":"error","error":"asleep"},"status":"error"},
			{"tool_use_id":"unknown-3","name":"unknown",
				"result":{"error":"there is no tool of this name","reason":"unknown_tool"},"status":"error"}
		]`, out.Content)
	})
}

func TestSlowToolDelaysNoOtherTool(t *testing.T) {
	both(t, func(t *testing.T, p *pilot) {
		begun, release := make(chan struct{}, 2), make(chan struct{})
		p.work(map[string]tools.Func{
			"slow": func(ctx context.Context, _ tools.Call) (any, error) {
				begun <- struct{}{}
				select {
				case <-release:
					return "done", nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			},
			"berth": returning("N4", nil),
		}, tools.Config{Config: worker.Config{Concurrency: 1}})
		p.chat("slow", "slow slow") // more calls than Config.Concurrency allows
		take(t, begun)
		for _, session := range []string{"a", "b", "c"} {
			p.chat(session, "berth")
			require.Equal(t, session, *take(t, p.outputs).SessionID)
		}
		close(release)
		require.Equal(t, "slow", *take(t, p.outputs).SessionID)
	})
}

func TestRepeatedCallHasTheSameIDsAndOneOutput(t *testing.T) {
	both(t, func(t *testing.T, p *pilot) {
		keys, calledTwice := make(chan string, 10), make(chan struct{})
		var calls atomic.Int32
		berth := map[string]tools.Func{"berth": func(ctx context.Context, c tools.Call) (any, error) {
			keys <- c.Key()
			if calls.Add(1) == 2 {
				close(calledTwice)
			}
			select { // a worker that joined after the end of the turn would not call the tool
			case <-calledTwice:
				return "N4", nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}
		// Both workers read all calls, like a worker that takes over before the other has committed its offsets.
		p.work(berth, tools.Config{})
		p.work(berth, tools.Config{Config: worker.Config{Group: "pilot-after-a-crash"}})
		p.chat("s", "berth")
		take(t, p.outputs)
		require.Equal(t, take(t, keys), take(t, keys))
		first, second := take(t, p.results), take(t, p.results)
		require.NotEmpty(t, first.Header("turntable.id"))
		require.Equal(t, first.Header("turntable.id"), second.Header("turntable.id"))

		p.chat("s2", "berth") // after the repeat
		require.Equal(t, "s2", *take(t, p.outputs).SessionID)
		require.Empty(t, p.outputs)
	})
}

func TestCallOfAStoppedWorkerGoesToTheNext(t *testing.T) {
	both(t, func(t *testing.T, p *pilot) {
		keys := make(chan string, 2)
		stop := p.work(map[string]tools.Func{"berth": func(ctx context.Context, c tools.Call) (any, error) {
			keys <- c.Key()
			<-ctx.Done()
			return nil, ctx.Err()
		}}, tools.Config{})
		p.chat("s", "berth")
		first := take(t, keys)
		stop()
		p.work(map[string]tools.Func{"berth": func(_ context.Context, c tools.Call) (any, error) {
			keys <- c.Key()
			return "N4", nil
		}}, tools.Config{})
		require.Equal(t, first, take(t, keys))
		out := take(t, p.outputs)
		require.JSONEq(t, `[{"tool_use_id":"berth-0","name":"berth","result":{"result":"N4"},"status":"success"}]`,
			out.Content)
	})
}

func TestRequestRepeatedAtAnotherInstanceIsOneTurn(t *testing.T) {
	both(t, func(t *testing.T, p *pilot) {
		p.work(map[string]tools.Func{"berth": returning("N4", nil)}, tools.Config{})
		p.chat("s", "berth")
		other, err := turnhttp.New("pilot", p.to, turnhttp.Config{})
		require.NoError(t, err)
		p.http = httptest.NewServer(other) // it has not seen the key
		t.Cleanup(p.http.Close)
		p.chat("s", "berth")
		take(t, p.outputs)
		p.chat("s2", "berth")
		require.Equal(t, "s2", *take(t, p.outputs).SessionID)
		select {
		case out := <-p.outputs:
			require.Fail(t, "a second turn", *out.SessionID)
		case <-time.After(100 * time.Millisecond):
		}
	})
}

func TestRedeliveredCallWithAPublishedResultIsNotRunAgain(t *testing.T) {
	both(t, func(t *testing.T, p *pilot) {
		var runs atomic.Int64
		functions := map[string]tools.Func{"berth": func(context.Context, tools.Call) (any, error) {
			runs.Add(1)
			return "N4", nil
		}}
		core, logs := observer.New(zap.InfoLevel)
		run := func(to processors.Publisher) (stop func()) {
			w, err := tools.NewWorker("pilot", to, functions, tools.Config{
				Config: worker.Config{Grace: time.Millisecond, Logger: zap.New(core)},
			})
			require.NoError(t, err)
			return p.start(func(ctx context.Context) error { return w.Run(ctx, p.brokers) })
		}
		settled := "record was settled before: it is not handled again"
		if p.guarantee == processors.AtLeastOnce { // the turn cannot know whether it wrote its first call before a crash
			settled = "record was answered before: its answer is published again"
		}
		broken := respondertest.NewInterrupted(p.to)
		stop := run(broken)
		p.chat("s", "berth")
		<-broken.Written
		stop()
		run(p.to)
		require.Eventually(t, func() bool {
			return logs.FilterMessage(settled).Len() == 1
		}, waitLimit, 10*time.Millisecond)
		require.EqualValues(t, 1, runs.Load())
		require.Nil(t, take(t, p.outputs).Status)
	})
}
