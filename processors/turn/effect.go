package turn

import (
	"strconv"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// outcome is the result of applying an event.
type outcome struct {
	// Changed reports that the row must be written, or deleted if State is nil. If it is false the row stays unchanged.
	Changed bool
	// State is the new row if Changed is true.
	State *turnrow.State
	// Effects are the outputs and dead letters, to be sent in this order before the row is written.
	Effects []effect
	// NewParts are the parts of the row to write before the row.
	NewParts []RowPart
	// UnusedParts are the numbers of the parts that the row no longer names, to delete after the row is written.
	UnusedParts []uint32

	row  []byte     // State as it is written; nil until it is encoded
	full fullValues // to be cached with State for the next event
}

// effect describes an output of the transition: an emit, a deadLetter or a Hidden.
type effect interface{ effect() }

// emit writes a record of the session to an output topic.
type emit struct {
	// Key is the record's key: the session id, or that of the user's memory (topics.MemoryKey) for memoirSession and, with
	// Config.Memoir, for enriched, or the name of the tool for toolTook.
	Key string
	// ID is the record's turntable.id header. A repeat after a crash has the same ID.
	ID string
	// Value is the record's value. Its type determines the topic.
	Value value
	// DeadlineMS is the record's turntable.deadline header, in milliseconds since the epoch: when the turn stops waiting
	// for what the record asks for. It is 0 for records that ask for nothing.
	DeadlineMS int64
}

// deadLetter writes a record to the group's dead-letter topic.
type deadLetter struct {
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

func (emit) effect()       {}
func (deadLetter) effect() {}
func (Hidden) effect()     {}

// value is the value of an output record. Its type determines the topic.
type value interface{ kind() string }

// The output topics' values.
type (
	// enriched is a step for the model, a record of enriched-message-input or, with Config.Memoir, of memoir-lookups.
	enriched topics.EnrichedMessage
	// called is a tool call, a record of tool-use.
	called topics.ToolUseItem
	// refused is an invalid tool call, a record of tool-use-dlq. The turn itself answers it with an error.
	refused topics.ToolUseItem
	// completed holds the results of all calls of a step, a record of tool-use-all-complete.
	completed topics.ToolResults
	// toolMessage is the message with the results of a step's calls, a record of message-input for other readers.
	toolMessage topics.Message
	// compactionRequested asks for a summary of the oldest messages of a history, a record of compaction-request.
	compactionRequested topics.CompactionRequest
	// gateRequested opens or withdraws a gate, a record of gate-requests.
	gateRequested topics.GateRequest
	// answered is the output of a turn, an answer or an error, a record of message-output.
	answered topics.Output
	// sessionEnded says that the session has ended, a record of session-end.
	sessionEnded topics.SessionEnd
	// forgotten is the tombstone of the session's conversation, a record of think-request-response.
	forgotten struct{}
	// memoirSession has the conversation of a session that has ended, a record of memoir-sessions.
	memoirSession topics.MemoirSnapshot
	// modelCharged is what an answer of a model cost, a record of model-costs.
	modelCharged topics.ModelCost
	// streamed is a record of the turn's event stream, a record of agent-events.
	streamed topics.AgentEvent
	// replyStreamed is an event of a response whose worker wrote none, a record of agent-events.
	replyStreamed topics.AgentEvent
	// toolTook is how long a tool call took, a record of tool-use-latency.
	toolTook topics.ToolLatency
)

func (enriched) kind() string            { return "enriched" }
func (called) kind() string              { return "tool-use" }
func (refused) kind() string             { return "tool-use-dlq" }
func (completed) kind() string           { return "all-complete" }
func (toolMessage) kind() string         { return "message" }
func (compactionRequested) kind() string { return "compaction" }
func (answered) kind() string            { return "output" }
func (sessionEnded) kind() string        { return "session-end" }
func (forgotten) kind() string           { return "tombstone" }
func (memoirSession) kind() string       { return "snapshot" }
func (modelCharged) kind() string        { return "model-cost" }
func (streamed) kind() string            { return "event" }
func (replyStreamed) kind() string       { return "reply-event" }
func (toolTook) kind() string            { return "tool-latency" }

func (g gateRequested) kind() string {
	if g.Withdrawn != "" {
		return "gate-withdrawal"
	}
	return "gate-request"
}

// outputID derives an output's turntable.id. Steps count from 1. The output of the turn has step 0, so that it has the
// same ID however the turn ends.
func outputID(turn string, step uint32, v value, index int) string {
	return turn + "/" + strconv.FormatUint(uint64(step), 10) + "/" + v.kind() + "/" + strconv.Itoa(index)
}
