package agent_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/agent/agenttest"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
)

// payments is a shop's service, which the agent's tool uses.
type payments map[string]int

func (p payments) refund(ctx context.Context, o struct {
	Order int `json:"order"`
},
) (string, error) {
	p[tools.CallOf(ctx).Key()] = o.Order // a repeat of the call has the same key
	return "refunded", nil
}

// support makes the agent as the program does.
func support(model think.Model, p payments) *agent.Agent {
	a, err := agent.New("support", agent.Config{
		Model:    model,
		Tools:    []tools.Tool{tools.New("refund", "Pays an order back.", p.refund)},
		Approval: &approval.Policy{}, // a person is asked about each call
	})
	if err != nil {
		panic(err)
	}
	return a
}

// refundsNeedAPerson is the body of a test function, whose t would be a *testing.T.
func refundsNeedAPerson(t processortest.TB) {
	shop := payments{}
	// The test scripts the replies: the model is not called.
	s := agenttest.New(t, support(think.Func(nil), shop))
	s.Model(agenttest.Call("refund", `{"order":7}`))
	s.Say("session-1", "Refund order 7")
	fmt.Println(len(shop), "refunds before the approval of", s.Gate("session-1").Tool)
	s.Approve("session-1")
	s.Model(think.Say("Order 7 is refunded."))
	fmt.Println(len(shop), "refund,", s.Answer("session-1").Content)

	s.Model(agenttest.Call("refund", `{"order":8}`), think.Say("I may not do that."))
	s.Say("session-1", "And order 8")
	s.Deny("session-1", "it was refunded yesterday")
	fmt.Println(len(shop), "refund,", s.Answer("session-1").Content)
}

// A test plays the user, the model and the person who approves, and the agent's own tools run.
func Example_test() {
	t := &console{}
	refundsNeedAPerson(t)
	t.end()
	// Output:
	// 0 refunds before the approval of refund
	// 1 refund, Order 7 is refunded.
	// 1 refund, I may not do that.
}

// console is what a *testing.T is in a test.
type console struct {
	processortest.TB
	ends []func()
}

func (c *console) Helper()                   {}
func (c *console) Failed() bool              { return false }
func (c *console) Errorf(f string, a ...any) { fmt.Printf(f+"\n", a...) }
func (c *console) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
func (c *console) Cleanup(end func())        { c.ends = append(c.ends, end) }

func (c *console) end() {
	for _, end := range slices.Backward(c.ends) {
		end()
	}
}
