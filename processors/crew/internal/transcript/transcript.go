// Package transcript merges the updates of an ACP session into what the row of a coding agent keeps of it: tool calls, the
// plan, the fill level of the context, tokens, modes, commands, options and the title. What is said is not kept: it is only
// in the changes that the functions return, which are the events to write. An update of the kind user_message_chunk has no effect: it
// repeats a prompt. The functions are pure.
package transcript

import (
	"bytes"
	"encoding/hex"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/processors/fold/bridge"
	"github.com/turntable-streams/turntable/topics"
)

// applied is the application of one update.
type applied struct {
	t       *Transcript
	agentID string
	update  topics.Raw
	replay  bool
}

// kinds are the kinds of session/update in version 1 of ACP.
var kinds = map[string]func(applied) []Change{
	"user_message_chunk":        func(applied) []Change { return nil }, // it repeats a prompt
	"agent_message_chunk":       applied.message,
	"agent_thought_chunk":       applied.thought,
	"tool_call":                 func(a applied) []Change { return a.call(true) },
	"tool_call_update":          func(a applied) []Change { return a.call(false) },
	"plan":                      applied.plan,
	"available_commands_update": applied.commands,
	"current_mode_update":       applied.mode,
	"config_option_update":      applied.options,
	"session_info_update":       applied.info,
	"usage_update":              applied.usage,
}

// Apply applies the member update of a session/update notification and returns its events. An update that is a replay of the
// past has no events and no text; only what is the state of the session counts: plan, usage, modes, commands, options, title.
// An update of an unknown kind is returned as it is. Bytes that are not valid JSON are ignored.
func (t *Transcript) Apply(agentID string, update topics.Raw, replay bool) []Change {
	if !jsontext.Value(update).IsValid() {
		return nil
	}
	a := applied{t: t, agentID: agentID, update: update, replay: replay}
	apply, known := kinds[text(update, "sessionUpdate")]
	if !known {
		apply = applied.raw
	}
	changes := apply(a)
	if replay {
		return nil
	}
	return changes
}

// ApplyAll applies updates in their order. Consecutive chunks of a message are one event, and so are updates of a tool call
// that follow each other without a change of its status.
func (t *Transcript) ApplyAll(agentID string, updates []topics.Raw, replay bool) (all []Change) {
	for _, update := range updates {
		for _, c := range t.Apply(agentID, update, replay) {
			if len(all) == 0 || !merge(&all[len(all)-1], c) {
				all = append(all, c)
			}
		}
	}
	return all
}

// merge merges a change into the one before it, if they are one event.
func merge(last *Change, next Change) bool {
	if last.Event != next.Event {
		return false
	}
	switch fields := last.Fields.(type) {
	case Text:
		more := next.Fields.(Text)
		if more.MessageID != fields.MessageID {
			return false
		}
		fields.Text += more.Text
		last.Fields = fields
		return true
	case Call:
		more := next.Fields.(Call)
		if more.ToolCall.ToolCallID != fields.ToolCall.ToolCallID || more.ToolCall.Status != fields.ToolCall.Status {
			return false
		}
		last.Fields = more
		return true
	}
	return false
}

func (a applied) raw() []Change {
	return []Change{{Event: EventUpdate, Fields: Update{AgentID: a.agentID, Update: a.update}}}
}

// get returns a member of the update, nil if it is absent or null.
func (a applied) get(name string) topics.Raw { return bridge.Get(a.update, name) }

// Bounds of what a row keeps of a session.
const (
	maxCalls     = 200
	maxCallBytes = 48 << 10 // of all tool calls together
	maxContent   = 4 << 10  // bytes of the content of a tool call
	maxField     = 2 << 10  // bytes of each other value of a tool call
	maxName      = 256      // bytes of IDs and names
	maxTitle     = 512      // bytes of titles
	maxPlan      = 16 << 10 // bytes of a plan
	maxEntry     = 1 << 10  // bytes of the text of an entry of a plan
	maxList      = 16 << 10 // bytes of the commands, of the modes, and of the options
)

// idOf returns an ID as rows keep it. Cut IDs could be equal, so a long one is replaced by its digest.
func idOf(id string) string {
	if len(id) <= maxName {
		return id
	}
	d := digests.Of("crew-tool-call", id)
	return hex.EncodeToString(d[:])
}

// whole returns a copy of a value, nil if it has more bytes than limit: half a value is no JSON.
func whole(v topics.Raw, limit int) []byte {
	if len(v) > limit {
		return nil
	}
	return bytes.Clone(v)
}

// first returns an array of the first of elements that have no more than limit bytes together.
func first(elements []topics.Raw, limit int) []byte {
	list := []byte{'['}
	for _, e := range elements {
		if len(list)+len(e)+2 > limit {
			break
		}
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, e...)
	}
	return append(list, ']')
}

// The types of events in a Change.
const (
	EventText      = "agent:text"
	EventThinking  = "agent:thinking"
	EventContent   = "agent:content"
	EventToolCall  = "agent:tool_call"
	EventPlan      = "agent:plan"
	EventUsage     = "agent:usage"
	EventCompacted = "agent:context_compacted"
	// EventUpdate is an update that has no event of its own, such as one of an unknown kind.
	EventUpdate = "agent:update"
)

// Change is an event to write. Fields is one of the types of this file, as the constants say in their order.
type Change struct {
	Event  string
	Fields any
}

// Text is what an agent said or thought. A change of MessageID begins a new message.
type Text struct {
	AgentID   string `json:"agentId"`
	Text      string `json:"text"`
	MessageID string `json:"messageId,omitzero"`
}

// Content is something that an agent said and that is not a text.
type Content struct {
	AgentID string `json:"agentId"`
	Content Block  `json:"content"`
}

// Block is a content block. Type is image, audio, resource or resource_link.
type Block struct {
	Type     string `json:"contentType"`
	Text     string `json:"text,omitzero"`
	Data     string `json:"data,omitzero"` // base64
	URI      string `json:"uri,omitzero"`
	MimeType string `json:"mimeType,omitzero"`
	Name     string `json:"name,omitzero"`
}

// Call is a tool call with all its updates merged.
type Call struct {
	AgentID  string        `json:"agentId"`
	ToolCall view.ToolCall `json:"toolCall"`
}

// Plan is the whole plan, an array.
type Plan struct {
	AgentID string     `json:"agentId"`
	Plan    topics.Raw `json:"plan"`
}

// Usage is the tokens of a session, and the fill level of its context.
type Usage struct {
	AgentID          string `json:"agentId"`
	InputTokens      int64  `json:"inputTokens"`
	OutputTokens     int64  `json:"outputTokens"`
	CacheReadTokens  int64  `json:"cacheReadTokens,omitzero"`
	CacheWriteTokens int64  `json:"cacheWriteTokens,omitzero"`
	// Cost is an object with amount and currency, and CostUSD the amount if the currency is USD; nil if not known.
	Cost              topics.Raw `json:"cost,omitzero"`
	CostUSD           topics.Raw `json:"costUsd,omitzero"`
	ContextWindowUsed int64      `json:"contextWindowUsed,omitzero"`
	ContextWindowSize int64      `json:"contextWindowSize,omitzero"`
}

// Compacted says that the agent compacted its context. PercentDrop is rounded.
type Compacted struct {
	AgentID      string `json:"agentId"`
	PreviousUsed int64  `json:"previousUsed"`
	CurrentUsed  int64  `json:"currentUsed"`
	PercentDrop  int64  `json:"percentDrop"`
}

// Update is an update as the agent wrote it.
type Update struct {
	AgentID string     `json:"agentId"`
	Update  topics.Raw `json:"update"`
}
