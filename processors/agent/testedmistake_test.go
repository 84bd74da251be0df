package agent_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/failing"
	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/agent/agenttest"
	"github.com/turntable-streams/turntable/processors/agent/internal/parts"
	"github.com/turntable-streams/turntable/processors/memoir/updater"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

// fails runs a story that must fail with a text.
func fails(t *testing.T, a *agent.Agent, want string, story func(tb processortest.TB, s *agenttest.Agent)) {
	t.Helper()
	tb := failing.Run(func(tb *failing.TB) { story(tb, agenttest.New(tb, a)) })
	require.Contains(t, tb.Errors(), want)
}

func TestBrokenToolFailsTheTest(t *testing.T) {
	broken := tools.New("refund", "", func(context.Context, order) (string, error) { panic("no bank") })
	a := must(agent.New("support", agent.Config{Model: think.Func(nil), Tools: []tools.Tool{broken}}))
	fails(t, a, "tool refund panicked: no bank", func(_ processortest.TB, s *agenttest.Agent) {
		s.Model(agenttest.Call("refund", `{"number":7}`), think.Say("Done."))
		s.Say("s-1", "Refund order 7")
		s.Answer("s-1")
	})
	fails(t, a, `a scripted reply calls tool "refun"; the tools of agent support are ["refund"]`, func(_ processortest.TB, s *agenttest.Agent) {
		s.Model(agenttest.Call("refun", `{"number":7}`), think.Say("Done."))
		s.Say("s-1", "Refund order 7")
		s.Answer("s-1")
	})
}

func TestToolsThatGroupsAnswerAreTools(t *testing.T) {
	a := must(agent.New("support", agent.Config{Model: think.Func(nil), Delegates: []string{"support", "pilot"}}))
	tb := failing.Run(func(tb *failing.TB) {
		s := agenttest.New(tb, a)
		s.Model(agenttest.Call("agent_cancel", `{}`), think.Say("I cannot."))
		s.Say("s-1", "Ask the pilot")
		s.Answer("s-1")
	})
	require.NotContains(t, tb.Errors(), "a scripted reply calls tool")
}

func TestRepeatWithoutACrashFailsTheTest(t *testing.T) {
	fails(t, newShop().Agent, "was written again without a crash", func(_ processortest.TB, s *agenttest.Agent) {
		before := s.Driver().Snapshot()
		s.Model(think.Say("Hi."))
		s.Say("s-1", "Hello")
		s.Answer("s-1")
		s.Driver().Crash(before)
		s.Commit()
	})
}

func TestToolThatRunsTwiceWithoutACrashFailsTheTest(t *testing.T) {
	of := parts.Of
	t.Cleanup(func() { parts.Of = of })
	parts.Of = func(a any, o parts.Options) ([]parts.Worker, []string, error) {
		tool := o.Tool
		o.Tool = func(name string, f tools.Func) tools.Func {
			once := tool(name, f)
			return func(ctx context.Context, c tools.Call) (any, error) {
				_, _ = once(ctx, c)
				return once(ctx, c)
			}
		}
		return of(a, o)
	}
	fails(t, newShop().Agent, "of tool find_order was made again without a crash", func(_ processortest.TB, s *agenttest.Agent) {
		s.Model(agenttest.Call("find_order", `{"number":7}`), think.Say("On its way."))
		s.Say("s-1", "Where is order 7?")
		s.Answer("s-1")
	})
}

func TestTurnThatDoesNotEndFailsTheTest(t *testing.T) {
	find := func(s *agenttest.Agent) {
		s.Model(agenttest.Call("find_order", `{"number":7}`))
		s.Say("s-1", "Where is order 7?")
	}
	for want, story := range map[string]func(s *agenttest.Agent){
		"session s-1: the result of tool find_order is held (Release): the test ended before the turn": func(s *agenttest.Agent) {
			s.Hold("find_order")
			find(s)
		},
		"session s-1: a call of tool find_order has no result (write it to topic support-tool-use-result": func(s *agenttest.Agent) {
			s.Replace("find_order", func(context.Context, tools.Call) (any, error) { return tools.Pending{}, nil })
			find(s)
		},
		"session s-1: a tool of refund waits for a person until ": askRefund,
		"session s-1: the model is asked again at 2026-01-02T03:04:05.500Z (Advance): the test ended": func(s *agenttest.Agent) {
			s.ModelFails(&think.Unavailable{Err: think.ErrUnreachable})
			s.Say("s-1", "Hello")
		},
	} {
		t.Run(want, func(t *testing.T) {
			fails(t, newShop().Agent, want, func(_ processortest.TB, s *agenttest.Agent) { story(s) })
		})
	}
}

// A test that shows what a person is asked need not play the rest.
func TestTurnMayWaitForAPersonAtTheEnd(t *testing.T) {
	shop := newShop()
	s := agenttest.New(t, shop.Agent)
	askRefund(s)
	require.Equal(t, "refund", s.Gate("s-1").Tool)
	require.Empty(t, shop.paid)
}

func TestAgentWorksAfterASoftFailure(t *testing.T) {
	shop, ended := newShop(), false
	fails(t, shop.Agent, "soft", func(tb processortest.TB, s *agenttest.Agent) {
		tb.Errorf("soft")
		askRefund(s)
		s.Approve("s-1")
		s.Model(think.Say("Done."))
		ended = s.Answer("s-1").Content == "Done."
	})
	require.True(t, ended)
	require.Len(t, shop.paid, 1)
}

func TestModelThatIsUnavailableUntilTheDeadlineEndsTheTurnAtOnce(t *testing.T) {
	a := must(agent.New("support", agent.Config{Model: think.Func(nil), Turn: turn.Config{ThinkTimeout: 10 * time.Second}}))
	s := agenttest.New(t, a)
	down := &think.Unavailable{After: 20 * time.Second, Err: think.ErrUnreachable}
	s.ModelFails(down)
	s.Say("s-1", "Hello")
	failure := s.Failure("s-1")
	require.Equal(t, topics.CodeThinkFailed, failure.Code)
	retried := s.LastAsked().Retried
	require.False(t, retried(down))
	require.True(t, retried(&think.Unavailable{After: time.Second, Err: think.ErrUnreachable}))
}

// The waits get longer: the third one, of two seconds, does not fit.
func TestModelIsAskedAgainUntilTheWaitDoesNotFit(t *testing.T) {
	a := must(agent.New("support", agent.Config{Model: think.Func(nil), Turn: turn.Config{ThinkTimeout: 3 * time.Second}}))
	s := agenttest.New(t, a)
	for range 3 {
		s.ModelFails(&think.Unavailable{Err: think.ErrUnreachable})
	}
	s.Say("s-1", "Hello")
	s.Advance(2 * time.Second)
	require.Equal(t, topics.CodeThinkFailed, s.Failure("s-1").Code)
	require.Len(t, s.Asked(), 3)
}

func TestRecordsOfTheDriverAreHandledBeforeTheTestLooks(t *testing.T) {
	shop := newShop()
	s := agenttest.New(t, shop.Agent)
	hello := func(session string) {
		role := "user"
		processortest.In(s.Driver(), shop.Topics().MessageInput).Pipe(session, topics.Message{
			SessionID: &session, Role: &role, Content: topics.Raw(`"Hello"`),
		})
	}
	s.Model(agenttest.Call("find_order", `{"number":7}`))
	hello("s-0")
	require.Len(t, s.Asked(), 2)
	s.Model(think.Say("Hi."), agenttest.Call("find_order", `{"number":7}`))
	s.Answer("s-0")
	hello("s-1")
	require.Len(t, s.Calls("find_order"), 2)
	require.Len(t, s.Asked(), 4)
	s.Model(think.Say("Hi."), agenttest.Call("find_order", `{"number":8}`))
	s.Answer("s-1")
	hello("s-2")
	s.Hold("find_order") // later calls
	require.Len(t, s.Asked(), 6)
	s.Model(think.Say("Hi."), agenttest.Call("find_order", `{"number":9}`))
	s.Answer("s-2")
	hello("s-3")
	s.Replace("find_order", nil) // later calls
	s.Release("find_order")
	s.Model(think.Say("Hi."))
	s.Answer("s-3")
	require.Contains(t, input(s), "order 9 is on its way")
}

func TestUpdaterThatEndsItsGoroutineFailsTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		a := everything(t, func(context.Context, updater.Ended) (updater.Memory, error) {
			(&failing.TB{}).Fatal("in an updater")
			return updater.Memory{}, nil
		})
		fails(t, a, "the function of the worker of support-memoir-context-session-end ended its goroutine", func(_ processortest.TB, s *agenttest.Agent) {
			s.Model(think.Say("Hi."))
			s.Say("s-1", "Hello")
			s.Answer("s-1")
			s.Advance(time.Hour)
		})
		require.Zero(t, time.Since(began))
	})
}

func TestErrorsSayWhatToDo(t *testing.T) {
	for want, story := range map[string]func(s *agenttest.Agent){
		"session s-1 has 0 open gates, want 1: the model was asked and has no scripted reply (Model)": func(s *agenttest.Agent) {
			s.Say("s-1", "Refund order 7")
			s.Approve("s-1")
		},
		"session s-1 has 2 open gates, want 1: choose one of Gates, and decide about it with Decide": func(s *agenttest.Agent) {
			s.Model(agenttest.Together(agenttest.Call("refund", `{"number":7}`), agenttest.Call("refund", `{"number":8}`)))
			s.Say("s-1", "Refund orders 7 and 8")
			s.Approve("s-1")
		},
		"session s-1 has no answer: a call of tool find_order has no result (write it to topic": func(s *agenttest.Agent) {
			s.Replace("find_order", func(context.Context, tools.Call) (any, error) { return tools.Pending{}, nil })
			s.Model(agenttest.Call("find_order", `{"number":7}`))
			s.Say("s-1", "Where is order 7?")
			s.Answer("s-1")
		},
		`session s1 has no answer: no message was written to this session; sessions are ["s-1"]`: func(s *agenttest.Agent) {
			s.Say("s-1", "Hello")
			s.Answer("s1")
		},
		"the model was not asked": func(s *agenttest.Agent) { s.LastAsked() },
	} {
		t.Run(want, func(t *testing.T) {
			fails(t, newShop().Agent, want, func(_ processortest.TB, s *agenttest.Agent) { story(s) })
		})
	}
}
