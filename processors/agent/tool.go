package agent

import (
	"context"

	"github.com/turntable-streams/turntable/processors/turn/tools"
)

// task is the input of an agent that is a tool.
type task struct {
	Task string `json:"task" jsonschema:"the task, with all that the agent needs to know"`
}

// Tool returns a tool with which another agent gives this one a task, and waits for its answer. The description tells the model of
// the other agent what this one can do. Each call has a session of its own: this agent sees the task and nothing else. A call that
// is repeated, for example after a crash, gets the answer of the first one, see AskOnce. This agent runs in the process that
// calls the tool, with the part Doors. See Config.Delegates for tasks that the other agent does not wait for.
func (a *Agent) Tool(name, description string) tools.Tool {
	return tools.New(name, description, func(ctx context.Context, in task) (string, error) {
		call := tools.CallOf(ctx)
		key := call.Agent + "/" + call.Key()
		return a.AskOnce(ctx, key, key, in.Task)
	})
}
