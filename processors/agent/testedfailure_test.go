package agent_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/failing"
	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/agent/agenttest"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
)

func TestWhatTheTestDidNotExpectFailsItWithTheReason(t *testing.T) {
	for want, story := range map[string]func(s *agenttest.Agent){
		"session s-1: the model was asked and has no scripted reply (Model)": func(s *agenttest.Agent) {
			s.Say("s-1", "Hello")
		},
		"session s-1 has no answer: the model was asked and has no scripted reply (Model)": func(s *agenttest.Agent) {
			s.Say("s-1", "Hello")
			s.Answer("s-1")
		},
		"session s-1 has no answer: a tool of refund waits for a person until 2026-": func(s *agenttest.Agent) {
			askRefund(s)
			s.Answer("s-1")
		},
		"session s-1 has no answer: the result of tool find_order is held (Release)": func(s *agenttest.Agent) {
			s.Hold("find_order")
			s.Model(agenttest.Call("find_order", `{"number":7}`))
			s.Say("s-1", "Where is order 7?")
			s.Answer("s-1")
		},
		"session s-1 has no answer: the model is asked again at 2026-01-02T03:04:05.500Z (Advance)": func(s *agenttest.Agent) {
			s.ModelFails(&think.Unavailable{Err: think.ErrUnreachable})
			s.Say("s-1", "Hello")
			s.Answer("s-1")
		},
		"the model was not asked for the last 1 scripted replies": func(s *agenttest.Agent) {
			s.Model(think.Say("Hi."))
		},
		"session s-1 has an answer that the test did not read": func(s *agenttest.Agent) {
			s.Model(think.Say("Hi."))
			s.Say("s-1", "Hello")
		},
		"session s-1 has the error think_failed, which the test did not read: ": func(s *agenttest.Agent) {
			s.ModelFails(think.ErrRefused)
			s.Say("s-1", "Hello")
		},
		"a turn of session s-1 has no answer but the error think_failed: ": func(s *agenttest.Agent) {
			s.ModelFails(think.ErrRefused)
			s.Say("s-1", "Hello")
			s.Answer("s-1")
		},
		"a turn of session s-1 has an answer and no error": func(s *agenttest.Agent) {
			s.Model(think.Say("Hi."))
			s.Say("s-1", "Hello")
			s.Failure("s-1")
		},
		`topic support-streams-dlq has a dead letter of topic support-tool-use-result offset 0, key "s-1": `: func(s *agenttest.Agent) {
			processortest.InRaw(s.Driver(), "support-tool-use-result").Pipe("s-1", []byte("{not json"))
		},
		"session s-1 has 0 open gates":  func(s *agenttest.Agent) { s.Approve("s-1") },
		"agent support has no tool fly": func(s *agenttest.Agent) { s.Calls("fly") },
		"the function of tool find_order ended its goroutine": func(s *agenttest.Agent) {
			s.Replace("find_order", func(context.Context, tools.Call) (any, error) {
				(&failing.TB{}).Fatal("in a tool")
				return nil, nil
			})
			s.Model(agenttest.Call("find_order", `{"number":7}`))
			s.Say("s-1", "Where is order 7?")
		},
		"the clock cannot go back": func(s *agenttest.Agent) { s.Advance(-1) },
	} {
		t.Run(want, func(t *testing.T) {
			tb := failing.Run(func(tb *failing.TB) { story(agenttest.New(tb, newShop().Agent)) })
			require.Contains(t, tb.Errors(), want)
		})
	}
}

func TestPersonOfAnAgentWithoutApprovalsFailsTheTest(t *testing.T) {
	a := must(agent.New("support", agent.Config{Model: think.StreamFunc(script)}))
	tb := failing.Run(func(tb *failing.TB) { agenttest.New(tb, a).Approve("s-1") })
	require.Contains(t, tb.Errors(), "agent support has no gates: its Config.Approval is nil")
}

func TestPanicOfAToolIsLogged(t *testing.T) {
	tb := failing.Run(func(tb *failing.TB) {
		s := agenttest.New(tb, newShop().Agent)
		s.Replace("find_order", func(context.Context, tools.Call) (any, error) { panic("no map") })
		s.Model(agenttest.Call("find_order", `{"number":7}`), think.Say("I cannot."))
		s.Say("s-1", "Where is order 7?")
		s.Answer("s-1")
	})
	require.Empty(t, tb.Errors())
	require.Contains(t, tb.Log(), "tool find_order panicked: no map")
}

func TestToolThatWaitsFailsTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the limit passes only when all goroutines are blocked
		tb := failing.Run(func(tb *failing.TB) {
			s := agenttest.New(tb, newShop().Agent)
			s.Replace("find_order", func(ctx context.Context, _ tools.Call) (any, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})
			s.Model(agenttest.Call("find_order", `{"number":7}`))
			s.Say("s-1", "Where is order 7?")
		})
		require.Contains(t, tb.Errors(), "the handler of support-tool-use offset 0 has not returned for 30s: if a tool waits")
	})
}
