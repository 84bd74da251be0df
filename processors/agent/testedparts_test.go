package agent_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/failing"
	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/agent/agenttest"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/memoir/updater"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/compact"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

// remember is an updater of memories whose error is that of the test.
func remember(err *error) updater.Func {
	return func(context.Context, updater.Ended) (updater.Memory, error) {
		return updater.Memory{Text: "likes maps"}, *err
	}
}

// everything is an agent with all capabilities.
func everything(t *testing.T, of updater.Func) *agent.Agent {
	services, err := sink.ParseServices("harbor:http://127.0.0.1:1")
	require.NoError(t, err)
	return must(agent.New("support", agent.Config{
		Model: think.StreamFunc(script), Tools: []tools.Tool{find}, Approval: &approval.Policy{Default: approval.Allow},
		Memory: &agent.Memory{Updater: of}, Costs: true, Latencies: true, Budgets: turn.Budgets{User: turn.Budget{Total: 1}},
		Compactor: compact.Func(func(context.Context, compact.Conversation) (compact.Summary, error) { return compact.Summary{}, nil }),
		Deliver:   &agent.Deliver{Services: services}, Delegates: []string{"support", "pilot"},
	}))
}

func TestMemoriesAndBudgetsOfUsersArePlayed(t *testing.T) {
	var none error
	s := agenttest.New(t, everything(t, remember(&none)))
	user, price := "mira", 0.75
	say := func(session string) {
		reply := agenttest.Together(think.Say("Hi."))
		reply.Cost = &price
		s.Model(reply)
		s.Write(session, topics.Message{UserID: &user, Content: topics.Raw(`"Hello"`)})
		s.Answer(session)
	}
	say("s-1")
	require.Empty(t, s.Asked()[0].Memoir)
	s.Advance(time.Hour) // the session ends
	say("s-2")
	require.Equal(t, "likes maps", s.Asked()[1].Memoir)
	s.Write("s-3", topics.Message{UserID: &user, Content: topics.Raw(`"Hello"`)})
	require.Equal(t, topics.CodeOverBudget, s.Failure("s-3").Code)
}

func TestFailedMemoryFailsTheTest(t *testing.T) {
	failed := errors.New("no memory")
	a := everything(t, remember(&failed))
	tb := failing.Run(func(tb *failing.TB) {
		s := agenttest.New(tb, a)
		s.Model(think.Say("Hi."))
		s.Say("s-1", "Hello")
		s.Answer("s-1")
		s.Advance(time.Hour)
	})
	require.Contains(t, tb.Errors(), "topic support-memories-dlq has a dead letter of topic support-memoir-sessions offset 0, key \"s-1\": ")
}

// What is sent to others in production is read by the test, or fails it.
func TestDeliveriesAreOutputs(t *testing.T) {
	var none error
	a := everything(t, remember(&none))
	story := func(tb processortest.TB, read bool) {
		s := agenttest.New(tb, a)
		s.Model(think.Say("Hi."))
		processortest.In(s.Driver(), a.Topics().ReplyTo).PipeRaw("s-1", []byte(`{"callbackService":"harbor","bearerToken":"t"}`))
		s.Say("s-1", "Hello")
		s.Answer("s-1")
		if read {
			require.Equal(t, "harbor", processortest.Out(s.Driver(), a.Topics().Deliveries).Next().Value.Route.Service)
		}
	}
	story(t, true)
	tb := failing.Run(func(tb *failing.TB) { story(tb, false) })
	require.Contains(t, tb.Errors(), `topic support-deliveries has an output with key "s-1" that the test did not read`)
}

// A tool can answer later, through the door of callbacks, which writes a result.
func TestPendingToolIsAnsweredByTheTest(t *testing.T) {
	shop := newShop()
	s := agenttest.New(t, shop.Agent)
	s.Replace("find_order", func(context.Context, tools.Call) (any, error) { return tools.Pending{}, nil })
	s.Model(agenttest.Call("find_order", `{"number":7}`), think.Say("It is here."))
	s.Say("s-1", "Where is order 7?")
	call := s.Calls("find_order")[0]
	status := "success"
	processortest.In(s.Driver(), shop.Topics().ToolUseResult).Pipe("s-1", topics.ToolUseResult{
		SessionID: &call.SessionID, ToolUseID: &call.ToolUseID, Name: &call.Name, Result: topics.Raw(`{"at":"the door"}`), Status: &status,
	})
	require.Equal(t, "It is here.", s.Answer("s-1").Content)
	require.Contains(t, input(s), "the door")
}
