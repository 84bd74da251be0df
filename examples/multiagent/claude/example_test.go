package claude_test

import (
	"context"
	"fmt"

	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/turntable-streams/turntable/examples/multiagent/claude"
	"github.com/turntable-streams/turntable/processors/turn/think"
)

// If the model cannot be reached, the turn ends in an error output with this text.
func Example() {
	model, err := claude.New(claude.Settings{Key: "a key", Attempts: 1}, option.WithBaseURL("http://127.0.0.1:1"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer model.Close()
	_, err = model.Think(context.Background(), think.Step{Messages: question().Messages})
	fmt.Println(err)
	// Output: claude: API cannot be reached
}
