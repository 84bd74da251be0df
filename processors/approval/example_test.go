package approval_test

import (
	"fmt"

	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/topics"
)

func ExamplePolicy() {
	limit := 1000.0
	policy := approval.Policy{
		ReadOnly: []string{"berth_*"},
		Rules: []approval.Rule{
			{Tool: "pay", Effect: approval.Ask, Edit: true, Message: "May the agent pay?"},
			{Tool: "pay", Effect: approval.Deny, Args: map[string]approval.Condition{"/cents": {AtLeast: &limit}}},
		},
	}
	if err := policy.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	for _, call := range []approval.Call{
		{Tool: "berth_lookup"},
		{Tool: "pay", Args: topics.Raw(`{"cents":250}`)},
		{Tool: "pay", Args: topics.Raw(`{"cents":5000}`)},
		{Tool: "open_gate"},
	} {
		fmt.Println(call.Tool, policy.Evaluate(call).Effect)
	}
	// Output:
	// berth_lookup allow
	// pay ask
	// pay deny
	// open_gate ask
}
