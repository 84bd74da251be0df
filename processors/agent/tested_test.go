package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/agent/agenttest"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

// shop is an agent with a tool that reads and one that pays, which a person must approve, and what was paid, by the key of
// the call.
type shop struct {
	*agent.Agent
	paid map[string]int
}

func newShop() *shop {
	s := &shop{paid: map[string]int{}}
	refund := tools.New("refund", "Pays an order back.", func(ctx context.Context, o order) (string, error) {
		s.paid[tools.CallOf(ctx).Key()] = o.Number
		return fmt.Sprintf("order %d is paid back", o.Number), nil
	})
	s.Agent = must(agent.New("support", agent.Config{
		Model: think.Func(nil), // is not called
		Tools: []tools.Tool{find, refund},
		Approval: &approval.Policy{
			ReadOnly: []string{"find_order"}, Rules: []approval.Rule{{Tool: "refund", Effect: approval.Ask, Edit: true}},
		},
		Turn: turn.Config{ToolTimeout: time.Minute, ThinkTimeout: 5 * time.Minute},
	}))
	return s
}

// input returns what the model was asked last.
func input(s *agenttest.Agent) string {
	return string(s.LastAsked().Input().Content)
}

func TestToolRunsAndTheModelSeesItsResult(t *testing.T) {
	s := agenttest.New(t, newShop().Agent)
	s.Model(agenttest.Together(think.Say("Let me look."), agenttest.Call("find_order", `{"number":7}`), agenttest.Call("find_order", `{"number":8}`)))
	s.Say("s-1", "Where are orders 7 and 8?")
	require.Len(t, s.Calls("find_order"), 2)
	require.JSONEq(t, `{"number":7}`, string(s.Calls("find_order")[0].Input))
	require.Contains(t, input(s), "order 7 is on its way")
	require.Contains(t, input(s), "order 8 is on its way")
	s.Model(think.Say("On their way."), think.Say("You are welcome."))
	require.Equal(t, "On their way.", s.Answer("s-1").Content)
	s.Say("s-1", "Thank you")
	require.Equal(t, "You are welcome.", s.Answer("s-1").Content)
	require.Equal(t, `"Thank you"`, input(s))
	require.Len(t, s.Asked()[2].Messages, 5, "the history of the session")
}

// askRefund plays the turn until a person is asked.
func askRefund(s *agenttest.Agent) {
	s.Model(agenttest.Call("refund", `{"number":7}`))
	s.Say("s-1", "Refund order 7")
}

func TestApprovedCallRuns(t *testing.T) {
	shop := newShop()
	s := agenttest.New(t, shop.Agent)
	askRefund(s)
	require.Empty(t, shop.paid)
	require.Equal(t, "refund", s.Gate("s-1").Tool)
	s.Approve("s-1")
	require.Len(t, shop.paid, 1)
	s.Model(think.Say("Done."))
	require.Equal(t, "Done.", s.Answer("s-1").Content)
	require.Empty(t, s.Gates("s-1"))
}

func TestEditedCallRunsWithTheArgumentsOfThePerson(t *testing.T) {
	s := agenttest.New(t, newShop().Agent)
	askRefund(s)
	s.Edit("s-1", `{"number":8}`)
	s.Model(think.Say("Done."))
	require.Contains(t, input(s), "order 8 is paid back")
	s.Answer("s-1")
}

func TestCallThatIsNotApprovedDoesNotRun(t *testing.T) {
	for name, end := range map[string]func(s *agenttest.Agent){
		"too much":  func(s *agenttest.Agent) { s.Deny("s-1", "too much") },
		"timed_out": func(s *agenttest.Agent) { s.Expire("s-1") },
	} {
		t.Run(name, func(t *testing.T) {
			shop := newShop()
			s := agenttest.New(t, shop.Agent)
			askRefund(s)
			end(s)
			s.Model(think.Say("I may not."))
			require.Equal(t, "I may not.", s.Answer("s-1").Content)
			require.Contains(t, input(s), name)
			require.Empty(t, s.Calls("refund"))
			require.Empty(t, shop.paid)
		})
	}
}

func TestToolThatIsTooSlowIsAnsweredForAtItsDeadline(t *testing.T) {
	s := agenttest.New(t, newShop().Agent)
	s.Hold("find_order")
	s.Model(agenttest.Call("find_order", `{"number":7}`))
	s.Say("s-1", "Where is order 7?")
	s.Advance(2 * time.Minute)
	require.Contains(t, input(s), "timeout")
	s.Release("find_order") // the call has ended: there is no late result
	s.Model(think.Say("I cannot find it."))
	require.Equal(t, "I cannot find it.", s.Answer("s-1").Content)
}

// Timeouts that pass by the system's clock while the test runs end nothing.
func TestShortTimeoutsAreThoseOfTheTestsClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const short = 5 * time.Millisecond
		s := agenttest.New(t, must(agent.New("support", agent.Config{
			Model: think.StreamFunc(script), Tools: []tools.Tool{find}, Turn: turn.Config{ToolTimeout: short, ThinkTimeout: short},
		})))
		s.Hold("find_order")
		s.Say("s-1", "Where is order 7?")
		<-time.After(time.Second)
		s.Model(agenttest.Call("find_order", `{"number":7}`))
		<-time.After(time.Second)
		require.Equal(t, s.Now().Add(short), s.Asked()[0].Deadline.UTC())
		require.Equal(t, s.Now().Add(short), s.Calls("find_order")[0].Deadline.UTC())
		s.Release("find_order")
		s.Model(think.Say("It is on its way."))
		require.Equal(t, "It is on its way.", s.Answer("s-1").Content)
	})
}

func TestModelThatIsTooSlowEndsTheTurn(t *testing.T) {
	s := agenttest.New(t, newShop().Agent)
	s.Say("s-1", "Where is order 7?")
	s.Advance(5 * time.Minute)
	require.Equal(t, topics.CodeThinkTimeout, s.Failure("s-1").Code)
}

func TestModelThatFailsEndsTheTurn(t *testing.T) {
	s := agenttest.New(t, newShop().Agent)
	s.ModelFails(errors.New("no model"))
	s.Say("s-1", "Where is order 7?")
	require.Equal(t, topics.CodeThinkFailed, s.Failure("s-1").Code)
}

func TestModelThatIsUnavailableIsAskedAgainOnTheClockOfTheTest(t *testing.T) {
	s := agenttest.New(t, newShop().Agent)
	s.ModelFails(&think.Unavailable{After: 20 * time.Second, RateLimit: true, Err: think.ErrUnreachable})
	s.Say("s-1", "Hello")
	s.Model(think.Say("Hi."))
	s.Advance(20*time.Second - 1)
	require.Len(t, s.Asked(), 1)
	s.Advance(1)
	require.Equal(t, "Hi.", s.Answer("s-1").Content)
	require.Equal(t, s.Asked()[0].Key, s.Asked()[1].Key)
}

func TestReplacedToolIsNotRun(t *testing.T) {
	shop := newShop()
	s := agenttest.New(t, shop.Agent)
	s.Replace("refund", func(context.Context, tools.Call) (any, error) { return nil, errors.New("the bank is closed") })
	askRefund(s)
	s.Approve("s-1")
	s.Model(think.Say("Try tomorrow."))
	s.Answer("s-1")
	require.Contains(t, input(s), "the bank is closed")
	require.Empty(t, shop.paid)
	require.Len(t, s.Calls("refund"), 1)
}

func TestSessionsDoNotWaitForEachOther(t *testing.T) {
	s := agenttest.New(t, newShop().Agent)
	askRefund(s)
	s.Model(think.Say("Hi."))
	user := "u-1"
	s.Write("s-2", topics.Message{UserID: &user, Content: topics.Raw(`"Hello"`)})
	require.Equal(t, "Hi.", s.Answer("s-2").Content)
	require.Equal(t, &user, s.Asked()[1].UserID)
	s.Deny("s-1", "no")
	s.Model(think.Say("No."))
	require.Equal(t, "No.", s.Answer("s-1").Content)
}

func TestCancelledTurnInterruptsItsCalls(t *testing.T) {
	shop := newShop()
	s := agenttest.New(t, shop.Agent)
	s.Hold("find_order")
	s.Model(agenttest.Call("find_order", `{"number":7}`))
	s.Say("s-1", "Where is order 7?")
	processortest.In(s.Driver(), shop.Topics().SessionControl).Pipe("s-1", topics.Control{Action: topics.ActionCancel})
	require.Equal(t, topics.CodeCancelled, s.Failure("s-1").Code)
	s.Release("find_order")
}
