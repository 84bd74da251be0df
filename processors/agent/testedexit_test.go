package agent_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/failing"
	"github.com/turntable-streams/turntable/processors/agent/agenttest"
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
	synctest.Test(t, func(t *testing.T) { // fails if a goroutine is left
		tb, stuck := &failing.TB{}, make(chan struct{})
		s := agenttest.New(tb, newShop().Agent)
		s.Replace("find_order", func(context.Context, tools.Call) (any, error) {
			<-stuck
			return tools.Pending{}, nil
		})
		require.Contains(t, tb.Step(func() {
			s.Model(agenttest.Call("find_order", `{"number":7}`))
			s.Say("s-1", "Where is order 7?")
		}), "has not returned for 30s")
		s.Say("s-2", "Hello")
		tb.End()
		close(stuck)
	})
}
