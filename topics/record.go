package topics

// This file declares the record types of the pipeline, in FlightDeck's wire format. The order of the fields in a struct
// is their order in the JSON. A nil *string is JSON null.

// Raw is the bytes of one JSON value, exactly as they were read, or nil for JSON null. A decoded Raw may alias the bytes
// of its record: treat it as read-only.
type Raw []byte

// Message is the value of {agent}-message-input: one message of a conversation.
type Message struct {
	SessionID *string `json:"session_id"`
	UserID    *string `json:"user_id"`
	Role      *string `json:"role"`    // of the writer: "user", "assistant", or "tool", which only the turn may write; blank means "user"
	Content   Raw     `json:"content"` // a text, or an array of content blocks
	Timestamp *string `json:"timestamp"`
	Metadata  Raw     `json:"metadata" as:"object"` // an object, or nil
}

// EnrichedMessage is the value of {agent}-enriched-message-input: a step of a turn, which the model answers.
type EnrichedMessage struct {
	SessionID     *string  `json:"session_id"`
	UserID        *string  `json:"user_id"`
	Cost          *float64 `json:"cost"`                       // of the session so far, in dollars; nil at its first step
	History       Raw      `json:"history" as:"list" nil:"[]"` // an array of messages; nil is written as []
	LatestInput   Raw      `json:"latest_input" as:"object"`   // a message, encoded
	MemoirContext *string  `json:"memoir_context"`             // what the model is told about the user, or nil
	Timestamp     *string  `json:"timestamp"`
	// EphemeralPrompt is a further section of the system prompt, for this turn only. It is left out when empty.
	EphemeralPrompt string `json:"ephemeral_prompt,omitzero"`
	// TurnID and Step say where the events of this step belong on agent-events: the turn, and the number of the step in it.
	// They are left out if the turn has no stream of events yet.
	TurnID string `json:"turn_id,omitzero"`
	Step   int64  `json:"step" with:"TurnID"`
	// BothSpellings writes userId, latestInput and memoirContext too, which the model workers of FlightDeck's SDKs read instead
	// of user_id, latest_input and memoir_context. It is set in a record that is read if it has latestInput.
	BothSpellings bool `json:"-"`
}

// ThinkResponse is the value of {agent}-think-request-response: the model's answer to a step.
type ThinkResponse struct {
	SessionID           *string       `json:"session_id"`
	UserID              *string       `json:"user_id"`
	TotalSessionCost    *float64      `json:"total_session_cost"`             // of the session with this step, in dollars; nil if unknown
	PreviousSessionCost *float64      `json:"previous_session_cost"`          // of the session before this step, in dollars
	ThinkCost           *float64      `json:"think_cost"`                     // of this step, in dollars
	ThinkInputTokens    int64         `json:"think_input_tokens" as:"int32"`  // of this step
	ThinkOutputTokens   int64         `json:"think_output_tokens" as:"int32"` // of this step
	PreviousMessages    Raw           `json:"previous_messages" as:"list"`    // an array of messages, or nil
	LastInputMessage    Raw           `json:"last_input_message" as:"object"` // a message, or nil
	LastInputResponse   Raw           `json:"last_input_response" as:"list"`  // an array of messages, or nil
	ToolUses            []ToolUseItem `json:"tool_uses"`                      // the calls that the model asks for
	// NullToolUses are the indexes of the JSON null elements of tool_uses, ascending. ToolUses leaves them out.
	NullToolUses           []int   `json:"-"`
	EndTurn                bool    `json:"end_turn"`                            // whether the response ends the turn
	Compaction             bool    `json:"compaction"`                          // whether the worker has shortened the history
	CompactionInputTokens  int64   `json:"compaction_input_tokens" as:"int32"`  // of the call that shortened the history
	CompactionOutputTokens int64   `json:"compaction_output_tokens" as:"int32"` // of the call that shortened the history
	CompactionCost         float64 `json:"compaction_cost"`                     // of the call that shortened the history, in dollars
	Timestamp              *string `json:"timestamp"`
	// OldMessages reports that LastInputResponse was read from the field messages. Older model workers of FlightDeck write
	// it, with the step's own message first, and FlightDeck's SDKs write it to report that the model failed. OldMessages is
	// not written.
	OldMessages bool `json:"-"`
	// Known is the number of fields above, under any of their names, that the record had. A record with none is poison,
	// because an empty response would end the turn and clear the session's history.
	Known int `json:"-"`
}

// ToolUseItem is the value of {agent}-tool-use and of {agent}-tool-use-dlq: a call of a tool.
type ToolUseItem struct {
	ToolUseID  *string `json:"tool_use_id"`       // the model's ID of the call, which its result repeats
	ToolID     *string `json:"tool_id"`           // FlightDeck's ID of the tool, which the result repeats
	Name       *string `json:"name"`              // of the tool
	Input      Raw     `json:"input" as:"object"` // an object, or nil
	SessionID  *string `json:"session_id"`
	TotalTools int64   `json:"total_tools" as:"int32"` // the number of calls of the step
	Timestamp  *string `json:"timestamp"`
	// Origin is the Origin of the turn's message, and Depth how many delegations led to the turn. A model cannot set them. They
	// are left out when they are nil and 0.
	Origin Raw   `json:"origin,omitzero" as:"object"`
	Depth  int64 `json:"delegation_depth,omitzero" as:"int32"`
	// Invalid says what the model's worker found wrong with the call, whose tool is then not run: the model gets the text as its
	// result. It is left out when it is empty.
	Invalid string `json:"invalid,omitzero"`
}

// ToolUseResult is the value of {agent}-tool-use-result: what a call of a tool returned.
type ToolUseResult struct {
	SessionID  *string `json:"session_id"`
	ToolUseID  *string `json:"tool_use_id"`            // that of the call
	ToolID     *string `json:"tool_id"`                // that of the call
	Name       *string `json:"name"`                   // that of the call
	Result     Raw     `json:"result"`                 // an object, or nil; any other value is read as {"result":value}, see WrapResult
	LatencyMS  int64   `json:"latency_ms"`             // how long the call took, in milliseconds
	Status     *string `json:"status"`                 // "success", or "error" for a call that failed
	TotalTools int64   `json:"total_tools" as:"int32"` // that of the call
	Timestamp  *string `json:"timestamp"`
}

// ExpectedTool is an entry of ToolResults.Expected.
type ExpectedTool struct {
	ToolUseID *string `json:"tool_use_id"` // of the call
	Name      *string `json:"name"`        // of the tool
}

// ToolResults is the value of {agent}-tool-use-all-complete: the results of all calls of a step.
type ToolResults struct {
	SessionID     *string         `json:"session_id"`
	UserID        *string         `json:"user_id"`
	ExpectedCount int64           `json:"expected_count" as:"int32"` // number of calls of the step
	Results       []ToolUseResult `json:"results"`                   // one for each call
	Expected      []ExpectedTool  `json:"expected"`                  // the calls, in the order of Results
	DeadlineMS    int64           `json:"deadline_ms"`               // when the turn would have stopped waiting for results, in Unix milliseconds
	Emitted       bool            `json:"emitted"`                   // always true in records of package turn
	Timestamp     *string         `json:"timestamp"`
	Complete      bool            `json:"complete"` // FlightDeck's field; false in records of package turn
}

// Code is the error code of an error Output: one of the constants below.
type Code string

// The codes of an error output.
const (
	CodeThinkTimeout    Code = "think_timeout"     // the model did not respond in time
	CodeThinkFailed     Code = "think_failed"      // the model's worker reported a failure other than a deadline
	CodeEmptyResponse   Code = "empty_response"    // the model's reply has no text and no call
	CodeQueueFull       Code = "queue_full"        // too many messages of the session wait already
	CodeBusy            Code = "busy"              // another turn of the session is open, and messages do not wait
	CodeTooLarge        Code = "too_large"         // the conversation, the answer or the results do not fit into a record or the row
	CodeInvalidMessage  Code = "invalid_message"   // the message cannot be used
	CodeCancelled       Code = "cancelled"         // a session control ended the turn
	CodeParentCannotAsk Code = "parent_cannot_ask" // a call needs a person's approval, and the caller cannot ask for it
	CodeTooManySteps    Code = "too_many_steps"    // the model asked for tools in the last step that a turn may have
	CodeOverBudget      Code = "over_budget"       // the session has cost as much as it may
	CodeInternal        Code = "internal"          // a defect of the processor
)

// OutputError is the error field of an error output.
type OutputError struct {
	Code    Code   `json:"code"`    // what went wrong, for programs
	Message string `json:"message"` // what went wrong, for people
}

// Output is the value of {agent}-message-output: the answer to a message, or an error. Null fields are left out.
type Output struct {
	SessionID    *string      `json:"session_id,omitzero"`
	UserID       *string      `json:"user_id,omitzero"`
	Content      string       `json:"content"`                       // the answer, or the text of the error
	InputTokens  int64        `json:"input_tokens" as:"int32"`       // of the turn's last step
	OutputTokens int64        `json:"output_tokens" as:"int32"`      // of the turn's last step
	Cost         *float64     `json:"cost,omitzero"`                 // of the session so far, in dollars
	SourceAgent  string       `json:"source_agent"`                  // the agent that answers
	ReplyTo      Raw          `json:"reply_to,omitzero" as:"object"` // the reply descriptor, unchanged, or nil
	Timestamp    string       `json:"timestamp"`
	RequestID    *string      `json:"request_id,omitzero"` // left out when nil
	Status       *string      `json:"status,omitzero"`     // "error" for an error output, else nil
	Error        *OutputError `json:"error,omitzero"`      // nil for an ordinary output
}

// Route is the value of {agent}-reply-to: a reply descriptor, which says where an answer is delivered to.
type Route struct {
	CallbackService *string `json:"callbackService,omitzero"` // the name of the service that the answer is delivered to
	RequestID       *string `json:"request_id,omitzero"`      // that of the message that the route is for, nil for the oldest message without one
	// Raw is the whole descriptor and is written unchanged. The fields above are copies of its members, and are written only if Raw
	// is nil.
	Raw Raw `json:"-"`
}

// Control is the value of {agent}-session-control: a request to end a turn or a session.
type Control struct {
	Action    string  `json:"action"`     // "cancel", "purge" or "end"
	RequestID *string `json:"request_id"` // the message whose turn is cancelled, nil for the open turn
	Reason    *string `json:"reason"`     // a text for people
}

// CompactionRequest is the value of {agent}-compaction-request: the oldest messages of a history, to be summarized.
type CompactionRequest struct {
	SessionID    *string `json:"session_id"`
	UserID       *string `json:"user_id"`
	CompactionID string  `json:"compaction_id"`      // the result repeats it
	Messages     Raw     `json:"messages" as:"list"` // a JSON array of Message
	Timestamp    *string `json:"timestamp"`
}

// CompactionResult is the value of {agent}-compaction-result. With an Error or a blank Summary, there is no summary.
type CompactionResult struct {
	SessionID    *string  `json:"session_id"`
	CompactionID string   `json:"compaction_id"` // that of the request
	Summary      string   `json:"summary"`
	InputTokens  int64    `json:"input_tokens" as:"int32"`
	OutputTokens int64    `json:"output_tokens" as:"int32"`
	Cost         *float64 `json:"cost"`  // of the summary, in dollars; nil if it is unknown
	Error        *string  `json:"error"` // why there is no summary
	Timestamp    *string  `json:"timestamp"`
}

// ThinkFailure is the value of {agent}-think-dlq. It has one of two shapes: the bytes of the original enriched record
// (the reason is in the error.reason header), or {"originalValue":"...","error":"..."}.
type ThinkFailure struct {
	LatestInput Raw     `json:"latest_input,omitzero" as:"object"` // of the original enriched record, or nil
	Reason      *string `json:"error"`                             // of the second shape, or nil
}

// MemoirSnapshot is the value of {agent}-memoir-context-session-end: a session that has ended, with the memory of its
// user at that time.
type MemoirSnapshot struct {
	SessionID     *string        `json:"session_id"`
	UserID        *string        `json:"user_id"`
	MemoirContext string         `json:"memoir_context"` // the user's memory
	ThinkResponse *ThinkResponse `json:"think_response"` // the last response of the session
	Timestamp     *string        `json:"timestamp"`
	// Messages is the field messages of think_response, in which FlightDeck's memoir updater looks for the conversation. It is
	// an array of messages, and is left out when nil.
	Messages Raw `json:"-"`
}

// SessionEnd is the value of {agent}-session-end: an empty object.
type SessionEnd struct{}

// ToolLatency is the value of {agent}-tool-use-latency, which FlightDeck creates and never writes: how long one call of a
// tool took. See turn.Config.Latencies.
type ToolLatency struct {
	ToolName  *string `json:"tool_name"`
	LatencyMS int64   `json:"latency_ms"` // in milliseconds
	SessionID *string `json:"session_id"`
	Timestamp *string `json:"timestamp"`
	// Status is "error" for a call that failed. FlightDeck has no such field; it is left out when empty.
	Status string `json:"status,omitzero"`
}

// SessionCost is the value of {agent}-session-cost, which older versions of FlightDeck wrote: what the model calls of a session
// have cost so far. See package processors/memoir/cost.
type SessionCost struct {
	SessionID         *string  `json:"session_id"`
	UserID            *string  `json:"user_id"`
	LLMCalls          int64    `json:"llm_calls" as:"int32"`
	TotalInputTokens  int64    `json:"total_input_tokens" as:"int32"`
	TotalOutputTokens int64    `json:"total_output_tokens" as:"int32"`
	EstimatedCostUSD  *float64 `json:"estimated_cost_usd"`
	Timestamp         *string  `json:"timestamp"`
}
