package peer_test

import (
	"encoding/json"
	"fmt"

	"github.com/turntable-streams/turntable/processors/peer"
)

// The definition of the tool for a model. It can be converted to a think.Tool.
func ExampleTool() {
	tool := peer.Tool()
	var schema struct {
		Required []string `json:"required"`
	}
	if err := json.Unmarshal(tool.InputSchema, &schema); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tool.Name, schema.Required)
	// Output: delegate_to_peer [peerId content]
}
