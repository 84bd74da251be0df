package policyfile_test

import (
	"fmt"

	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/approval/policyfile"
)

func ExampleParse() {
	policy, err := policyfile.Parse([]byte(`
read_only: ["berth_*"]
rules:
  - tool: pay
    effect: ask
    message: May the agent pay?
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(policy.Evaluate(approval.Call{Tool: "pay"}).Effect)
	_, err = policyfile.Parse([]byte("rules:\n  - tool: pay\n    effect: sometimes\n"))
	fmt.Println(err)
	// Output:
	// ask
	// approval: bad policy: line 2: rule 1: effect: "sometimes" is none of allow, ask and deny
}
