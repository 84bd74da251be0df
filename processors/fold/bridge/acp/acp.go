// Package acp translates the updates of an agent on the Agent Client Protocol (ACP) into events.
//
// A Bridge takes the params of session/update notifications as JSON, or as the SDK's type. Prefer JSON: the SDK decodes the
// numbers of inputs and outputs into floats.
package acp

import (
	"encoding/json" // the SDK's types implement its interfaces
	"fmt"

	"github.com/coder/acp-go-sdk"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/fold/bridge"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// Bridge translates one turn: the updates of a prompt and its result. The zero value is ready to use. It is not safe for
// concurrent use.
type Bridge struct {
	turn      bridge.Turn
	messageID string
	calls     map[string]*toolCall
}

// updates maps the kinds of session/update to their translations. Other kinds are ignored: a user's messages are not part of
// the agent's turn, and modes, commands and titles belong to the session.
var updates = map[string]func(*Bridge, topics.Raw){
	"agent_message_chunk": (*Bridge).message,
	"agent_thought_chunk": (*Bridge).thought,
	"tool_call":           (*Bridge).tool,
	"tool_call_update":    (*Bridge).tool,
	"plan":                func(b *Bridge, u topics.Raw) { b.turn.Data("plan", bridge.Get(u, "entries")) },
	"usage_update":        (*Bridge).context,
}

// Update translates the params of a session/update notification. It fails with folder.ErrSyntax if they are not JSON. With
// folder.ErrDepth it also returns the valid events.
func (b *Bridge) Update(params topics.Raw) ([]folder.Event, error) {
	if !valid(params) {
		return nil, folder.ErrSyntax
	}
	update := bridge.Get(params, "update")
	if translate := updates[bridge.String(bridge.Get(update, "sessionUpdate"))]; translate != nil {
		translate(b, update)
	}
	return b.turn.Take()
}

// Notification is Update for the SDK's type. It also fails if the notification cannot be encoded.
func (b *Bridge) Notification(n acp.SessionNotification) ([]folder.Event, error) {
	params, err := json.Marshal(n)
	if err != nil {
		return nil, fmt.Errorf("acp: notification: %w", err)
	}
	return b.Update(params)
}

// Answer translates the result of session/prompt, which ends the turn, with its token usage if present. It fails as Update
// does.
func (b *Bridge) Answer(result topics.Raw) ([]folder.Event, error) {
	if !valid(result) {
		return nil, folder.ErrSyntax
	}
	b.turn.Close()
	usage := bridge.Get(result, "usage")
	b.turn.Usage(bridge.Get(usage, "inputTokens"), bridge.Get(usage, "outputTokens"),
		bridge.Get(usage, "totalTokens"), nil)
	b.turn.Done(bridge.String(bridge.Get(result, "stopReason")))
	return b.turn.Take()
}

// Response is Answer for the SDK's type.
func (b *Bridge) Response(r acp.PromptResponse) ([]folder.Event, error) {
	result, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("acp: response: %w", err)
	}
	return b.Answer(result)
}

// Fail ends a turn whose prompt failed, with an error text.
func (b *Bridge) Fail(message string) ([]folder.Event, error) {
	b.turn.Fail(message)
	return b.turn.Take()
}

func (b *Bridge) message(update topics.Raw) {
	// A chunk with another message id begins a new message.
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

// file adds content as a file, with its URI or else as a data URI.
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

// context adds the fill level of the model's context. It is not the usage of the turn.
func (b *Bridge) context(update topics.Raw) {
	f := bridge.Fields{}.Value("used", bridge.Get(update, "used")).Value("size", bridge.Get(update, "size"))
	b.turn.Data("context", f.Value("cost", bridge.Get(update, "cost")).Object())
}

func valid(v topics.Raw) bool {
	return jsontext.Value(v).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}
