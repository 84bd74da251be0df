package agent_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/agent/agenttest"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/processors/turn/think"
)

func TestCrashInTheMiddleOfAToolCallMakesItAgainWithItsKey(t *testing.T) {
	shop := newShop()
	s := agenttest.New(t, shop.Agent)
	s.Hold("refund")
	askRefund(s)
	s.Approve("s-1") // it is paid back, and the agent does not know
	s.Crash()
	s.Release("refund")
	s.Model(think.Say("Done."))
	require.Equal(t, "Done.", s.Answer("s-1").Content)
	require.Len(t, s.Calls("refund"), 2)
	require.Len(t, shop.paid, 1, "both calls have one key")
	require.Len(t, s.Asked(), 2, "the answers of the model were written")
}

func TestCrashInTheMiddleOfTheModelsAnswerAsksItAgain(t *testing.T) {
	s := agenttest.New(t, newShop().Agent)
	s.Say("s-1", "Hello")
	s.Crash()
	s.Model(think.Say("Hi."))
	require.Equal(t, "Hi.", s.Answer("s-1").Content)
	require.Len(t, s.Asked(), 2)
	require.Equal(t, s.Asked()[0].Key, s.Asked()[1].Key)
}

// A story with all kinds of calls has the same answer if the agent crashes after any of its sentences, and what has settled is
// not done twice.
func TestCrashBetweenSentencesRepeatsNothing(t *testing.T) {
	story := []func(t *testing.T, s *agenttest.Agent){
		func(_ *testing.T, s *agenttest.Agent) { s.Model(agenttest.Call("find_order", `{"number":7}`)) },
		func(_ *testing.T, s *agenttest.Agent) { s.Say("s-1", "Refund order 7") },
		func(_ *testing.T, s *agenttest.Agent) { s.Model(agenttest.Call("refund", `{"number":7}`)) },
		func(_ *testing.T, s *agenttest.Agent) { s.Say("s-1", "And hurry") },
		func(_ *testing.T, s *agenttest.Agent) { s.Approve("s-1") },
		func(_ *testing.T, s *agenttest.Agent) { s.Model(think.Say("Done.")) },
		func(t *testing.T, s *agenttest.Agent) { require.Equal(t, "Done.", s.Answer("s-1").Content) },
		func(_ *testing.T, s *agenttest.Agent) { s.Model(think.Say("I did.")) },
		func(t *testing.T, s *agenttest.Agent) { require.Equal(t, "I did.", s.Answer("s-1").Content) },
	}
	for _, commits := range []bool{false, true} {
		for crash := range len(story) {
			shop := newShop()
			s := agenttest.New(t, shop.Agent)
			for i, tell := range story {
				if commits && i == crash {
					s.Commit()
				}
				tell(t, s)
				if i == crash {
					s.Crash()
				}
			}
			s.Crash()
			require.Len(t, s.Calls("find_order"), 1, "crash after sentence %d", crash)
			require.Len(t, s.Calls("refund"), 1, "crash after sentence %d", crash)
			require.Len(t, shop.paid, 1)
		}
	}
}

func TestCrashRepeatsWhatWasNotCommitted(t *testing.T) {
	shop := newShop()
	s := agenttest.New(t, shop.Agent)
	batches := processortest.Out(s.Driver(), shop.Topics().BatchMessages)
	s.Model(think.Say("Hi."), think.Say("Hi again."))
	s.Say("s-1", "Hello")
	s.Crash()
	written := batches.Drain()
	require.Len(t, written, 2)
	require.Equal(t, written[0].ID(), written[1].ID())
	s.Commit()
	s.Crash()
	require.Empty(t, batches.Drain())
	require.Equal(t, "Hi.", s.Answer("s-1").Content)
	s.Say("s-1", "Hello")
	s.Advance(1)
	s.Crash()
	require.Len(t, batches.Drain(), 1)
	require.Equal(t, "Hi again.", s.Answer("s-1").Content)
}

func TestCrashAfterATimeoutKeepsIt(t *testing.T) {
	shop := newShop()
	s := agenttest.New(t, shop.Agent)
	askRefund(s)
	s.Expire("s-1")
	s.Crash()
	s.Model(think.Say("I may not."))
	s.Crash()
	require.Equal(t, "I may not.", s.Answer("s-1").Content)
	s.Advance(time.Hour)
	require.Empty(t, shop.paid)
}
