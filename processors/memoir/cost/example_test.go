package cost_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors/memoir/cost"
	"github.com/turntable-streams/turntable/topics"
)

// A program runs both groups with the same options.
func ExampleGraph() {
	for _, build := range []func(string, ...cost.Option) (*goka.GroupGraph, error){cost.Graph, cost.SpendingGraph} {
		graph, err := build("quay")
		if err != nil {
			panic(err)
		}
		// Pass it to processors.New.
		fmt.Println(graph.Group(), "reads", strings.Join(graph.InputStreams().Topics(), ", "))
	}
	// Output:
	// quay-session-costs reads quay-model-costs
	// quay-spending-totals reads quay-scope-costs
}

// A repeated record changes nothing.
func ExampleApplySession() {
	now := time.UnixMilli(1_790_000_000_000)
	user, dollars := "mira", 0.1
	var row *cost.SessionTotals
	for _, id := range []string{"first", "second", "second", "third"} {
		out := cost.ApplySession(row, "s1", &cost.Record{ID: id, Value: topics.ModelCost{
			UserID: &user, LLMCalls: 1, CostUSD: &dollars, AtMS: now.UnixMilli(),
		}}, now, cost.DefaultRules())
		if out.Row == nil {
			fmt.Println("repeated:", id)
			continue
		}
		row = out.Row
		fmt.Println(out.Cost.LLMCalls, *out.Cost.EstimatedCostUSD, out.Shares[0].Cost.Scope)
	}
	// Output:
	// 1 0.1 user/mira
	// 2 0.2 user/mira
	// repeated: second
	// 3 0.3 user/mira
}

// The sum of float64 would be 0.30000000000000004.
func ExampleAmount() {
	var sum cost.Amount
	for _, dollars := range []float64{0.1, 0.2} {
		amount, err := cost.AmountOf(dollars)
		if err != nil {
			panic(err)
		}
		sum = sum.Add(amount)
	}
	fmt.Println(sum.Dollars())
	// Output: 0.3
}
