package agent_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/failing"
	"github.com/turntable-streams/turntable/processors/agent/agenttest"
	"github.com/turntable-streams/turntable/processors/memoir/updater"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
)

func TestCallWhoseToolEndsItsGoroutineDoesNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := &failing.TB{}
		s := agenttest.New(tb, newShop().Agent)
		s.Replace("find_order", func(context.Context, tools.Call) (any, error) {
			(&failing.TB{}).Fatal("in a tool")
			return nil, nil
		})
		require.Contains(t, tb.Step(func() {
			s.Model(agenttest.Call("find_order", `{"number":7}`))
			s.Say("s-1", "Where is order 7?")
		}), "the function of tool find_order ended its goroutine")
		synctest.Wait()
		s.Say("s-2", "Hello")
		require.Len(t, s.Asked(), 2, "one question of each session: the call has no result")
		tb.End()
	})
}

func TestEndInterruptsAllCallsAlsoIfOneDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		var held context.Context
		tb := &failing.TB{}
		s := agenttest.New(tb, everything(t, func(context.Context, updater.Ended) (updater.Memory, error) {
			<-stuck
			return updater.Memory{}, nil
		}))
		require.Contains(t, tb.Step(func() {
			s.Model(think.Say("Hi."))
			s.Say("s-1", "Hello")
			s.Answer("s-1")
			s.Advance(time.Hour)
		}), "has not returned for 30s")
		s.Replace("find_order", func(ctx context.Context, _ tools.Call) (any, error) {
			held = ctx
			return "", nil
		})
		s.Hold("find_order")
		s.Model(agenttest.Call("find_order", `{"number":7}`))
		s.Say("s-2", "Where is order 7?")
		require.NoError(t, held.Err())
		tb.End()
		require.ErrorIs(t, held.Err(), context.Canceled)
		close(stuck)
	})
}
