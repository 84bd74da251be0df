// Package acp turns what an agent says over the Agent Client Protocol into canonical events.
//
// A Bridge takes the params of session/update notifications as they came, or the SDK's type for them. As they came is
// better: the SDK decodes the numbers of inputs and outputs into floats.
package acp

import (
	"encoding/json" // the SDK's types have its methods
	"fmt"

	"github.com/coder/acp-go-sdk"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/fold/bridge"
	"github.com/turntable-streams/turntable/topics"
)

// Bridge translates one turn: a prompt, its updates, and its answer. The zero value is ready. It is not safe for
// concurrent use.
type Bridge struct {
	turn      bridge.Turn
	messageID string
	calls     map[string]*toolCall
}

// updates says what each kind of session/update becomes. All others become nothing: what the user said is not the
// agent's turn, and modes, commands and titles are the session's.
var updates = map[string]func(*Bridge, topics.Raw){
	"agent_message_chunk": (*Bridge).message,
	"agent_thought_chunk": (*Bridge).thought,
	"tool_call":           (*Bridge).tool,
	"tool_call_update":    (*Bridge).tool,
	"plan":                func(b *Bridge, u topics.Raw) { b.turn.Data("plan", bridge.Get(u, "entries")) },
	"usage_update":        (*Bridge).context,
}

// Update translates the params of a session/update notification. It fails with fold.ErrSyntax for what is no JSON, and
// with fold.ErrDepth, next to the events it could make.
func (b *Bridge) Update(params topics.Raw) ([]fold.Event, error) {
	if !valid(params) {
		return nil, fold.ErrSyntax
	}
	update := bridge.Get(params, "update")
	if translate := updates[bridge.String(bridge.Get(update, "sessionUpdate"))]; translate != nil {
		translate(b, update)
	}
	return b.turn.Take()
}

// Notification is Update for the SDK's type.
func (b *Bridge) Notification(n acp.SessionNotification) ([]fold.Event, error) {
	params, err := json.Marshal(n)
	if err != nil {
		return nil, fmt.Errorf("acp: notification: %w", err)
	}
	return b.Update(params)
}

// Answer translates the result of session/prompt, which ends the turn: what it used, if it says so, and why it stopped.
func (b *Bridge) Answer(result topics.Raw) ([]fold.Event, error) {
	if !valid(result) {
		return nil, fold.ErrSyntax
	}
	b.turn.Close()
	usage := bridge.Get(result, "usage")
	b.turn.Usage(bridge.Get(usage, "inputTokens"), bridge.Get(usage, "outputTokens"),
		bridge.Get(usage, "totalTokens"), nil)
	b.turn.Done(bridge.String(bridge.Get(result, "stopReason")))
	return b.turn.Take()
}

// Response is Answer for the SDK's type.
func (b *Bridge) Response(r acp.PromptResponse) ([]fold.Event, error) {
	result, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("acp: response: %w", err)
	}
	return b.Answer(result)
}

// Fail ends a turn whose prompt failed, with the text of the failure.
func (b *Bridge) Fail(message string) ([]fold.Event, error) {
	b.turn.Fail(message)
	return b.turn.Take()
}

func (b *Bridge) message(update topics.Raw) {
	// The same id is the same message; a change starts a new one.
	if id := bridge.String(bridge.Get(update, "messageId")); id != b.messageID {
		b.messageID = id
		b.turn.Close()
	}
	content := bridge.Get(update, "content")
	switch bridge.String(bridge.Get(content, "type")) {
	case "text":
		b.turn.Text(bridge.Get(content, "text"))
	case "image", "audio", "resource_link":
		b.file(content)
	case "resource":
		b.file(bridge.Get(content, "resource"))
	}
}

// file shows content by its address, or with it where it has none.
func (b *Bridge) file(content topics.Raw) {
	uri, mediaType := bridge.String(bridge.Get(content, "uri")), bridge.String(bridge.Get(content, "mimeType"))
	if mediaType == "" {
		mediaType = "application/octet-stream"
	}
	if uri == "" {
		uri = "data:" + mediaType + ";base64," + bridge.String(bridge.Get(content, "data"))
	}
	b.turn.File(uri, mediaType)
}

func (b *Bridge) thought(update topics.Raw) {
	if content := bridge.Get(update, "content"); bridge.String(bridge.Get(content, "type")) == "text" {
		b.turn.Thought(bridge.Get(content, "text"))
	}
}

// context is how full the model's context is; it is not what the turn used.
func (b *Bridge) context(update topics.Raw) {
	f := bridge.Fields{}.Value("used", bridge.Get(update, "used")).Value("size", bridge.Get(update, "size"))
	b.turn.Data("context", f.Value("cost", bridge.Get(update, "cost")).Object())
}

func valid(v topics.Raw) bool {
	return jsontext.Value(v).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}
