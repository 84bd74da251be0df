package transcript

import (
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

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
	// Text is what the agent said: that of an EventText, and empty for all others.
	Text string
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
