package topics

// This file declares the record types of the pipeline, in FlightDeck's wire format. The order of the fields in a struct
// is their order in the JSON. A nil *string is JSON null.

// Raw is the bytes of one JSON value, exactly as they were read, or nil for JSON null. A decoded Raw may alias the bytes
// of its record: treat it as read-only.
type Raw []byte

// Message is one message of a conversation and the value of {agent}-message-input.
type Message struct {
	SessionID *string
	UserID    *string
	Role      *string
	Content   Raw
	Timestamp *string
	Metadata  Raw // an object, or nil
}

// EnrichedMessage is the value of {agent}-enriched-message-input.
type EnrichedMessage struct {
	SessionID     *string
	UserID        *string
	Cost          *float64 // of the session so far, in dollars; nil at its first step
	History       Raw      // an array of messages; nil is written as []
	LatestInput   Raw      // a message, encoded
	MemoirContext *string
	Timestamp     *string
	// EphemeralPrompt is a further section of the system prompt, for this turn only. It is left out when empty.
	EphemeralPrompt string
	// TurnID and Step say where the events of this step belong on agent-events: the turn, and the number of the step in it.
	// They are left out if the turn has no stream of events yet.
	TurnID string
	Step   int64
	// BothSpellings writes userId, latestInput and memoirContext too, which the model workers of FlightDeck's SDKs read instead
	// of user_id, latest_input and memoir_context. It is set in a record that is read if it has latestInput.
	BothSpellings bool
}

// ThinkResponse is the value of {agent}-think-request-response.
type ThinkResponse struct {
	SessionID           *string
	UserID              *string
	TotalSessionCost    *float64 // of the session with this step, in dollars; nil if unknown
	PreviousSessionCost *float64 // of the session before this step, in dollars
	ThinkCost           *float64 // of this step, in dollars
	ThinkInputTokens    int64
	ThinkOutputTokens   int64
	PreviousMessages    Raw // an array of messages, or nil
	LastInputMessage    Raw // a message, or nil
	LastInputResponse   Raw // an array of messages, or nil
	ToolUses            []ToolUseItem
	// NullToolUses are the indexes of the JSON null elements of tool_uses, ascending. ToolUses leaves them out.
	NullToolUses           []int
	EndTurn                bool
	Compaction             bool
	CompactionInputTokens  int64
	CompactionOutputTokens int64
	CompactionCost         float64
	Timestamp              *string
	// OldMessages reports that LastInputResponse was read from the field messages. Older model workers of FlightDeck write
	// it, with the step's own message first, and FlightDeck's SDKs write it to report that the model failed. OldMessages is
	// not written.
	OldMessages bool
	// Known is the number of fields above, under any of their names, that the record had. A record with none is poison,
	// because an empty response would end the turn and clear the session's history.
	Known int
}

// ToolUseItem is the value of {agent}-tool-use and of {agent}-tool-use-dlq.
type ToolUseItem struct {
	ToolUseID  *string
	ToolID     *string
	Name       *string
	Input      Raw // an object, or nil
	SessionID  *string
	TotalTools int64
	Timestamp  *string
	// Origin is the Origin of the turn's message, and Depth how many delegations led to the turn. A model cannot set them. They
	// are left out when they are nil and 0.
	Origin Raw
	Depth  int64
	// Invalid says what the model's worker found wrong with the call, whose tool is then not run: the model gets the text as its
	// result. It is left out when it is empty.
	Invalid string
}

// ToolUseResult is the value of {agent}-tool-use-result.
type ToolUseResult struct {
	SessionID  *string
	ToolUseID  *string
	ToolID     *string
	Name       *string
	Result     Raw // an object, or nil; any other value is read as {"result":value}, see WrapResult
	LatencyMS  int64
	Status     *string
	TotalTools int64
	Timestamp  *string
}

// ExpectedTool is an entry of ToolResults.Expected.
type ExpectedTool struct {
	ToolUseID *string
	Name      *string
}

// ToolResults is the value of {agent}-tool-use-all-complete.
type ToolResults struct {
	SessionID     *string
	UserID        *string
	ExpectedCount int64 // number of calls of the step
	Results       []ToolUseResult
	Expected      []ExpectedTool // the calls, in the order of Results
	DeadlineMS    int64          // when the turn would have stopped waiting for results, in Unix milliseconds
	Emitted       bool           // always true in records of package turn
	Timestamp     *string
	Complete      bool // FlightDeck's field; false in records of package turn
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
	Code    Code
	Message string
}

// Output is the value of {agent}-message-output. Null fields are left out.
type Output struct {
	SessionID    *string
	UserID       *string
	Content      string
	InputTokens  int64    // of the turn's last step
	OutputTokens int64    // of the turn's last step
	Cost         *float64 // of the session so far, in dollars
	SourceAgent  string
	ReplyTo      Raw // the reply descriptor, unchanged, or nil
	Timestamp    string
	RequestID    *string      // left out when nil
	Status       *string      // "error" for an error output, else nil
	Error        *OutputError // nil for an ordinary output
}

// Route is the value of {agent}-reply-to: a reply descriptor. Raw is the whole descriptor and is written unchanged; the
// other fields are copies of its members, and are written only if Raw is nil.
type Route struct {
	CallbackService *string
	RequestID       *string
	Raw             Raw
}

// Control is the value of {agent}-session-control.
type Control struct {
	Action    string  `json:"action"` // ActionCancel, ActionPurge or ActionEnd
	RequestID *string `json:"request_id"`
	Reason    *string `json:"reason"`
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
	Cost         *float64 `json:"cost"` // of the summary, in dollars; nil if it is unknown
	Error        *string  `json:"error"`
	Timestamp    *string  `json:"timestamp"`
}

// ThinkFailure is the value of {agent}-think-dlq. It has one of two shapes: the bytes of the original enriched record
// (the reason is in the error.reason header), or {"originalValue":"...","error":"..."}.
type ThinkFailure struct {
	LatestInput Raw     // of the original enriched record, or nil
	Reason      *string // of the second shape, or nil
}

// MemoirSnapshot is the value of {agent}-memoir-context-session-end: a session that has ended, with the memory of its
// user at that time.
type MemoirSnapshot struct {
	SessionID     *string
	UserID        *string
	MemoirContext string
	ThinkResponse *ThinkResponse
	Timestamp     *string
	// Messages is the field messages of think_response, in which FlightDeck's memoir updater looks for the conversation. It is
	// an array of messages, and is left out when nil.
	Messages Raw
}

// SessionEnd is the value of {agent}-session-end: an empty object.
type SessionEnd struct{}

// ToolLatency is the value of {agent}-tool-use-latency, which FlightDeck creates and never writes: how long one call of a
// tool took. See turn.Config.Latencies.
type ToolLatency struct {
	ToolName  *string `json:"tool_name"`
	LatencyMS int64   `json:"latency_ms"`
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
