package providertest

import (
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// Key is the API key of the tests. No error may contain it, nor Secret.
const (
	Key    = "sk-test-0123456789"
	Secret = "Which berth?"
)

// Message returns a message of a conversation. The content is JSON.
func Message(role, content string) topics.Message {
	return topics.Message{Role: &role, Content: topics.Raw(content)}
}

// Step returns a step with a conversation.
func Step(messages ...topics.Message) think.Step {
	return think.Step{Agent: "pilot", SessionID: "s", Key: "t/0/enriched/0", Messages: messages}
}

// Question returns a step with one message of the user.
func Question() think.Step { return Step(Message("user", `"`+Secret+`"`)) }

// Tool is a tool whose schema has members in an order that is not alphabetical.
func Tool() think.Tool {
	return think.Tool{
		Name: "berth_lookup", Description: "Finds a berth.",
		InputSchema: topics.Raw(`{"type":"object","properties":{"at":{"type":"string"}},"additionalProperties":false}`),
	}
}

// Conversation is one with an image, parallel calls of tools, one of which has no result, and a result without a call.
func Conversation() think.Step {
	return Step(
		Message("tool", `[{"tool_use_id":"old","name":"clock","result":{"at":"17:00"},"status":"success"}]`),
		Message("user", `[{"type":"text","text":"Which berth?"},
			{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw=="}}]`),
		Message("assistant", `[{"type":"text","text":"Let me look."},
			{"type":"tool_use","id":"a","name":"berth_lookup","input":{"at":"18:00"}},
			{"type":"tool_use","id":"b","name":"clock","input":{}},
			{"type":"tool_use","id":"c","name":"tide","input":{}}]`),
		Message("tool", `[{"tool_use_id":"c","name":"tide","result":{"error":"no tide"},"status":"error"},
			{"tool_use_id":"a","name":"berth_lookup","result":{"berth":"N4"},"status":"success"}]`),
		Message("user", `"And now?"`),
	)
}
