package turn_test

import (
	"fmt"

	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/turn"
)

// An agent that asks a person in the middle of a step: the step's clock stops.
func ExampleGraph_gates() {
	graph, err := turn.Graph("harbor", turn.Config{Gates: true, SupersedeGates: true})
	fmt.Println(graph.Group(), err)

	_, err = turn.Graph("harbor", turn.Config{SupersedeGates: true})
	fmt.Println(err)
	// Output:
	// harbor-streams <nil>
	// turn: invalid configuration: SupersedeGates needs Approval or Gates
}

// The turns of an agent wait for people before a tool spends money.
func ExampleGraph_approval() {
	graph, err := turn.Graph("quay", turn.Config{Approval: &approval.Policy{Rules: []approval.Rule{{Tool: "pay", Effect: approval.Ask}}}})
	if err != nil {
		panic(err)
	}
	// Pass it to processors.New.
	fmt.Println(graph.Group())
	// Output: quay-streams
}
