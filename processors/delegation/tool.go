package delegation

import (
	"strings"

	"github.com/turntable-streams/turntable/topics"
)

// The names of the tools.
const (
	// SendTool delegates a task without waiting for its result.
	SendTool = "agent_send_async"
	// CancelTool ends a delegation.
	CancelTool = "agent_cancel"
)

// ToolDefinition describes a tool to a model. It has the fields of think.Tool, so it can be converted to that.
type ToolDefinition struct {
	Name        string
	Description string
	InputSchema topics.Raw // a JSON schema of an object
}

const sendDescription = "Hand off a task to another agent and do not wait for it. The answer says at once that the task was " +
	"dispatched: tell the user so. The result is announced later, in a message of its own. The other agent sees only the message."

const sendSchema = `{"type":"object","properties":{` +
	`"agent_id":{"type":"string","description":"The agent that gets the task"},` +
	`"message":{"type":"string","description":"The task, with all that the agent needs to know"},` +
	`"timeout_seconds":{"type":"number","description":"Longest time for the task in seconds; omit for the longest that is allowed"}` +
	`},"required":["agent_id","message"]}`

const cancelDescription = "End a task that was handed off with " + SendTool + " and is not needed any more."

const cancelSchema = `{"type":"object","properties":{` +
	`"callback_id":{"type":"string","description":"The callback_id that ` + SendTool + ` returned"}` +
	`},"required":["callback_id"]}`

// Tools returns the definitions of agent_send_async and agent_cancel, for the models of agents that may delegate. agents are
// named in the description of the first one. Calls of the tools are answered by Graph: they need no worker, and a worker of the
// same agent must not answer them.
func Tools(agents ...string) []ToolDefinition {
	description := sendDescription
	if len(agents) > 0 {
		description += " Agents: " + strings.Join(agents, ", ") + "."
	}
	return []ToolDefinition{
		{Name: SendTool, Description: description, InputSchema: topics.Raw(sendSchema)},
		{Name: CancelTool, Description: cancelDescription, InputSchema: topics.Raw(cancelSchema)},
	}
}
