package topics

// The states of a batch. A turn that is still open has none.
const (
	BatchComplete  = "complete"
	BatchFailed    = "failed"
	BatchExpired   = "expired"
	BatchCancelled = "cancelled"
)

// The reasons why a batch is not complete. There are no others.
const (
	// ReasonGap: events are missing. The batch contains the events before the gap.
	ReasonGap = "gap"
	// ReasonTooLarge: the turn exceeded its limit, or its batch the size of a record. The batch contains the earlier
	// events.
	ReasonTooLarge = "too_large"
	// ReasonRunFailed: the run failed, by its terminal record or an error event. BatchMessage.Error has its text.
	ReasonRunFailed = "run_failed"
	// ReasonSilence: no more events arrived in time.
	ReasonSilence = "silence"
	// ReasonTooManyTurns: the session exceeded its limit of open turns, and this turn had been idle for the longest time.
	ReasonTooManyTurns = "too_many_turns"
	// ReasonCancelled: a session control, or the run itself, cancelled the turn.
	ReasonCancelled = "cancelled"
	// ReasonInternal: stored events could not be read back. The batch contains the events before them.
	ReasonInternal = "internal"
)

// BatchMessage is the value of {agent}-batch-messages: a folded turn, one record per turn. The first three fields are
// the batch that an agent answers with; nulls are kept.
type BatchMessage struct {
	Messages           Raw `json:"messages" as:"list" nil:"[]"`     // an array
	StopReason         Raw `json:"stop_reason"`                     // any JSON value, or nil
	PendingInteraction Raw `json:"pending_interaction" as:"object"` // an object, or nil

	SessionID string `json:"session_id"`
	TurnID    string `json:"turn_id"`
	Attempt   int64  `json:"attempt"`
	// State is how the turn ended: one of the Batch constants. Reason is why it is not complete, nil if it is.
	State  string  `json:"state"`
	Reason *string `json:"reason"`
	// Seq is the sequence number of the last record that was folded in order. If Reason is too_large, the last of these
	// records may be missing from the batch.
	Seq int64 `json:"seq"`

	// The fields below are added by the fold; the batch that an agent answers with does not have them.
	PendingInteractions Raw `json:"pending_interactions" as:"list" nil:"[]"` // an array of the interactions without an answer
	// ToolResults is an array of {message, denied, data, render}, for the results that have any of these.
	ToolResults Raw     `json:"tool_results" as:"list" nil:"[]"`
	Error       *string `json:"error"`
	Usage       Raw     `json:"usage" as:"object"` // an object, or nil
	// MalformedEvents is the number of events that were skipped because they are malformed.
	MalformedEvents int64 `json:"malformed_events"`
}

var batchMessageWire = tagged(checkBatchMessage)

func checkBatchMessage(b *BatchMessage) error {
	if b.SessionID == "" || b.TurnID == "" {
		return missing("session_id or turn_id")
	}
	switch b.State {
	case BatchComplete, BatchFailed, BatchExpired, BatchCancelled:
		return nil
	default:
		return wrongType("state", "unknown")
	}
}
