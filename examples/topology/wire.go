package main

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The wire format for programs outside of Turntable: topic names and JSON. Nothing here uses the library. A model, a tool
// or a dispatcher in another language has its own version of this file.

// The two agents of the topology.
const (
	orchestrator = "orchestrator"
	worker       = "worker"
)

// Topic suffixes; a topic's name is {agent}-{suffix}, its key the session.
const (
	messageInput    = "message-input"
	enrichedInput   = "enriched-message-input"
	thinkResponses  = "think-request-response"
	thinkDLQ        = "think-dlq"
	toolUses        = "tool-use"
	toolUseDLQ      = "tool-use-dlq"
	toolUseResults  = "tool-use-result"
	toolUseComplete = "tool-use-all-complete"
	messageOutput   = "message-output"
	replyTo         = "reply-to"
	sessionControl  = "session-control"
	gateRequests    = "gate-requests"
	gateDecisions   = "gate-decisions"
	gateOutcomes    = "gate-outcomes"
	memoirLookups   = "memoir-lookups"
	sessionEnd      = "session-end"
	memoirSessions  = "memoir-sessions"
	memoirSnapshots = "memoir-context-session-end"
	memoirContext   = "memoir-context"
	memoirDLQ       = "memoir-dlq"
)

func topicOf(agent, suffix string) string { return agent + "-" + suffix }

type message struct {
	SessionID *string        `json:"session_id"`
	UserID    *string        `json:"user_id"`
	Role      string         `json:"role"`
	Content   jsontext.Value `json:"content"`
	Timestamp string         `json:"timestamp"`
	Metadata  jsontext.Value `json:"metadata"`
}

// metadata is the metadata of a message of this program.
type metadata struct {
	RequestID string `json:"request_id,omitzero"`
	Agent     string `json:"agent,omitzero"`
}

// block is an element of an assistant message's content.
type block struct {
	Type  string         `json:"type"`
	Text  string         `json:"text,omitzero"`
	ID    string         `json:"id,omitzero"`
	Name  string         `json:"name,omitzero"`
	Input jsontext.Value `json:"input,omitzero"`
}

// outcome is an element of a tool message's content.
type outcome struct {
	ToolUseID string         `json:"tool_use_id"`
	Name      string         `json:"name"`
	Result    jsontext.Value `json:"result"`
	Status    string         `json:"status"`
}

type enrichedMessage struct {
	UserID      *string          `json:"user_id"`
	Cost        *float64         `json:"cost"`
	History     []jsontext.Value `json:"history"`
	LatestInput jsontext.Value   `json:"latest_input"`
	Memoir      string           `json:"memoir_context"`
}

type thinkResponse struct {
	SessionID              string           `json:"session_id"`
	UserID                 *string          `json:"user_id"`
	TotalSessionCost       float64          `json:"total_session_cost"`
	PreviousSessionCost    *float64         `json:"previous_session_cost"`
	ThinkCost              float64          `json:"think_cost"`
	ThinkInputTokens       int              `json:"think_input_tokens"`
	ThinkOutputTokens      int              `json:"think_output_tokens"`
	PreviousMessages       []jsontext.Value `json:"previous_messages"`
	LastInputMessage       jsontext.Value   `json:"last_input_message"`
	LastInputResponse      []message        `json:"last_input_response"`
	ToolUses               []toolUse        `json:"tool_uses"`
	EndTurn                bool             `json:"end_turn"`
	Compaction             bool             `json:"compaction"`
	CompactionInputTokens  int              `json:"compaction_input_tokens"`
	CompactionOutputTokens int              `json:"compaction_output_tokens"`
	CompactionCost         float64          `json:"compaction_cost"`
	Timestamp              string           `json:"timestamp"`
}

type toolUse struct {
	ToolUseID  string         `json:"tool_use_id"`
	ToolID     string         `json:"tool_id"`
	Name       string         `json:"name"`
	Input      jsontext.Value `json:"input"`
	SessionID  string         `json:"session_id"`
	TotalTools int            `json:"total_tools"`
	Timestamp  string         `json:"timestamp"`
}

type toolResult struct {
	SessionID  string         `json:"session_id"`
	ToolUseID  string         `json:"tool_use_id"`
	ToolID     *string        `json:"tool_id"`
	Name       string         `json:"name"`
	Result     jsontext.Value `json:"result"`
	LatencyMS  int64          `json:"latency_ms"`
	Status     string         `json:"status"`
	TotalTools int            `json:"total_tools"`
	Timestamp  string         `json:"timestamp"`
}

type output struct {
	Content   string         `json:"content"`
	Cost      *float64       `json:"cost"`
	ReplyTo   jsontext.Value `json:"reply_to"`
	RequestID string         `json:"request_id"`
	Status    string         `json:"status"`
	Error     *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// route is the reply descriptor that this program's dispatcher writes. The pipeline reads request_id and copies the other
// fields unchanged; callbackService is required.
type route struct {
	CallbackService string `json:"callbackService"`
	RequestID       string `json:"request_id"`
	SessionID       string `json:"session_id"`
	ToolUseID       string `json:"tool_use_id"`
	Name            string `json:"name"`
}

const (
	statusSuccess = "success"
	statusError   = "error"
)

// encode encodes one of the types above, which cannot fail.
func encode(v any) jsontext.Value {
	raw, err := json.Marshal(v, json.FormatNilSliceAsNull(true)) // no tool uses are null, never []
	if err != nil {
		panic(err)
	}
	return raw
}

// text encodes a string as JSON. Invalid UTF-8 becomes U+FFFD.
func text(s string) jsontext.Value {
	raw, _ := jsontext.AppendQuote(nil, s)
	return raw
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// contentText returns the text of a message's content, which is a string or an array with text blocks.
func contentText(content jsontext.Value) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var blocks []block
	if json.Unmarshal(content, &blocks) != nil {
		return ""
	}
	for _, b := range blocks {
		if b.Type == "text" {
			s += b.Text
		}
	}
	return s
}
