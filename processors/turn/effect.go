package turn

import (
	"strconv"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// Outcome is the result of applying an event.
type Outcome struct {
	// Changed reports that the row must be written, or deleted if State is nil. If it is false the row stays unchanged.
	Changed bool
	// State is the new row if Changed is true.
	State *turnrow.State
	// Effects are the outputs and dead letters, to be sent in this order before the row is written.
	Effects []Effect
	// NewParts are the parts of the row to write before the row.
	NewParts []NewPart
	// UnusedParts are the numbers of the parts that the row no longer names, to delete after the row is written.
	UnusedParts []uint32

	row  []byte     // State as it is written; nil until it is encoded
	full fullValues // to be cached with State for the next event
}

// Effect describes an output of the transition: an Emit, a DeadLetter or a Hidden.
type Effect interface{ effect() }

// Emit writes a record of the session to an output topic.
type Emit struct {
	// Key is the record's key: the session id, or that of the user's memory (topics.MemoryKey) for MemoirSession and, with
	// Config.Memoir, for Enriched, or the name of the tool for ToolTook.
	Key string
	// ID is the record's turntable.id header. A repeat after a crash has the same ID.
	ID string
	// Value is the record's value. Its type determines the topic.
	Value Value
	// DeadlineMS is the record's turntable.deadline header, in milliseconds since the epoch: when the turn stops waiting
	// for what the record asks for. It is 0 for records that ask for nothing.
	DeadlineMS int64
}

// DeadLetter writes a record to the group's dead-letter topic.
type DeadLetter struct {
	// Held is the record if it was held in the row; nil means the record that is being applied.
	Held *turnrow.Held
	// Reason says why the record was not used.
	Reason string
}

// Hidden reports that exchanges of a history were hidden. It causes a log line and a metric, and no record.
type Hidden struct {
	// Bytes and Messages are the size and the number of the messages that are no longer sent to the model.
	Bytes, Messages int
	// Summarized reports that a summary of them was sent in their place.
	Summarized bool
}

func (Emit) effect()       {}
func (DeadLetter) effect() {}
func (Hidden) effect()     {}

// Value is the value of an output record. Its type determines the topic.
type Value interface{ kind() string }

// The output topics' values.
type (
	// Enriched is a step for the model, a record of enriched-message-input or, with Config.Memoir, of memoir-lookups.
	Enriched topics.EnrichedMessage
	// Called is a tool call, a record of tool-use.
	Called topics.ToolUseItem
	// Refused is an invalid tool call, a record of tool-use-dlq. The turn itself answers it with an error.
	Refused topics.ToolUseItem
	// Completed holds the results of all calls of a step, a record of tool-use-all-complete.
	Completed topics.ToolResults
	// ToolMessage is the message with the results of a step's calls, a record of message-input for other readers.
	ToolMessage topics.Message
	// CompactionRequested asks for a summary of the oldest messages of a history, a record of compaction-request.
	CompactionRequested topics.CompactionRequest
	// GateRequested opens or withdraws a gate, a record of gate-requests.
	GateRequested topics.GateRequest
	// Answered is the output of a turn, an answer or an error, a record of message-output.
	Answered topics.Output
	// SessionEnded says that the session has ended, a record of session-end.
	SessionEnded topics.SessionEnd
	// Forgotten is the tombstone of the session's conversation, a record of think-request-response.
	Forgotten struct{}
	// MemoirSession has the conversation of a session that has ended, a record of memoir-sessions.
	MemoirSession topics.MemoirSnapshot
	// ModelCharged is what an answer of a model cost, a record of model-costs.
	ModelCharged topics.ModelCost
	// Streamed is a record of the turn's event stream, a record of agent-events.
	Streamed topics.AgentEvent
	// ReplyStreamed is an event of a response whose worker wrote none, a record of agent-events.
	ReplyStreamed topics.AgentEvent
	// ToolTook is how long a tool call took, a record of tool-use-latency.
	ToolTook topics.ToolLatency
)

func (Enriched) kind() string            { return "enriched" }
func (Called) kind() string              { return "tool-use" }
func (Refused) kind() string             { return "tool-use-dlq" }
func (Completed) kind() string           { return "all-complete" }
func (ToolMessage) kind() string         { return "message" }
func (CompactionRequested) kind() string { return "compaction" }
func (Answered) kind() string            { return "output" }
func (SessionEnded) kind() string        { return "session-end" }
func (Forgotten) kind() string           { return "tombstone" }
func (MemoirSession) kind() string       { return "snapshot" }
func (ModelCharged) kind() string        { return "model-cost" }
func (Streamed) kind() string            { return "event" }
func (ReplyStreamed) kind() string       { return "reply-event" }
func (ToolTook) kind() string            { return "tool-latency" }

func (g GateRequested) kind() string {
	if g.Withdrawn != "" {
		return "gate-withdrawal"
	}
	return "gate-request"
}

// outputID derives an output's turntable.id. Steps count from 1. The output of the turn has step 0, so that it has the
// same ID however the turn ends.
func outputID(turn string, step uint32, v Value, index int) string {
	return turn + "/" + strconv.FormatUint(uint64(step), 10) + "/" + v.kind() + "/" + strconv.Itoa(index)
}
