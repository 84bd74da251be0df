package cost_test

import (
	"fmt"
	"strings"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors/memoir/cost"
)

// A program runs both groups with the same options.
func ExampleGraph() {
	for _, build := range []func(string, cost.Config) (*goka.GroupGraph, error){cost.Graph, cost.SpendingGraph} {
		graph, err := build("quay", cost.Config{})
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
