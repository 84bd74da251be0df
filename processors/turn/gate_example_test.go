package turn_test

import (
	"fmt"

	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/turn"
)

// An agent that asks a person in the middle of a step: the step's clock stops.
func ExampleWithGates() {
	graph, err := turn.Graph("harbor", turn.WithGates(), turn.WithSupersedeGates())
	fmt.Println(graph.Group(), err)

	_, err = turn.Graph("harbor", turn.WithSupersedeGates())
	fmt.Println(err)
	// Output:
	// harbor-streams <nil>
	// turn: option out of range: gates are superseded without WithApproval or WithGates
}

// The turns of an agent wait for people before a tool spends money.
func ExampleWithApproval() {
	graph, err := turn.Graph("quay", turn.WithApproval(approval.Policy{Rules: []approval.Rule{{Tool: "pay", Effect: approval.Ask}}}))
	if err != nil {
		panic(err)
	}
	// Pass it to processors.New.
	fmt.Println(graph.Group())
	// Output: quay-streams
}
