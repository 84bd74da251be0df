package turn_test

import (
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// A call that waits for a person, who approves it with a smaller amount.
func ExampleWithApproval() {
	policy := approval.Policy{
		ReadOnly: []string{"read_*"},
		Rules:    []approval.Rule{{Tool: "pay", Effect: approval.Ask, Edit: true}},
	}
	graph, err := turn.Graph("harbor", turn.WithApproval(policy))
	fmt.Println(graph.Group(), err)

	// What the group does, played against its transition.
	now := time.UnixMilli(1_790_000_000_000)
	rules := turn.DefaultRules()
	rules.Agent, rules.Approval = "harbor", &policy
	text := func(s string) *string { return &s }
	from := func(offset string) *turn.Record {
		return &turn.Record{Session: "harbor-s19", Cause: offset, Topic: "t", At: now, Value: []byte(offset)}
	}
	var state *turn.State
	var request turn.GateRequested
	play := func(e turn.Event) {
		out, err := turn.Apply(state, e, nil, now, rules)
		if err != nil {
			fmt.Println(err)
			return
		}
		state = out.State
		for _, effect := range out.Effects {
			e, ok := effect.(turn.Emit)
			if !ok {
				continue
			}
			switch v := e.Value.(type) {
			case turn.GateRequested:
				request = v
				fmt.Printf("asks: may %s run with %s?\n", v.Tool, v.Args)
			case turn.Called:
				fmt.Printf("calls %s with %s\n", *v.Name, v.Input)
			}
		}
	}
	play(turn.MessageArrived{Record: from("1"), Message: topics.Message{Role: text("user"), Content: topics.Raw(`"Pay the pilot"`)}})
	play(turn.ThinkResponded{Record: from("2"), Response: topics.ThinkResponse{Known: 1, ToolUses: []topics.ToolUseItem{
		{ToolUseID: text("tu_1"), Name: text("read_rates"), Input: topics.Raw(`{}`)},
		{ToolUseID: text("tu_2"), Name: text("pay"), Input: topics.Raw(`{"amount":900}`)},
	}}})
	args := topics.Raw(`{"amount":100}`)
	play(turn.GateEnded{Record: from("3"), Outcome: topics.GateOutcome{
		GateID: request.GateID, CallID: request.CallID, Tool: request.Tool, Status: topics.GateApproved,
		EffectiveArgs: args, EffectiveArgsSHA256: topics.ArgsSHA256(args),
	}})
	// Output:
	// harbor-streams <nil>
	// calls read_rates with {}
	// asks: may pay run with {"amount":900}?
	// calls pay with {"amount":100}
}

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
