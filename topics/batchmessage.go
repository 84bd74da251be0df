package topics

import "fmt"

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
	Messages           Raw // an array
	StopReason         Raw // any JSON value, or nil
	PendingInteraction Raw // an object, or nil

	SessionID string
	TurnID    string
	Attempt   int64
	// State is how the turn ended: one of the Batch constants. Reason is why it is not complete, nil if it is.
	State  string
	Reason *string
	// Seq is the sequence number of the last record that was folded in order. If Reason is too_large, the last of these
	// records may be missing from the batch.
	Seq int64

	// The fields below are added by the fold; the batch that an agent answers with does not have them.
	PendingInteractions Raw // an array of the interactions without an answer
	ToolResults         Raw // an array of {message, denied, data, render}, for the results that have any of these
	Error               *string
	Usage               Raw // an object, or nil
	// MalformedEvents is the number of events that were skipped because they are malformed.
	MalformedEvents int64
}

var batchMessageWire = wire[BatchMessage]{depth: MaxDepth, read: readBatchMessage, write: writeBatchMessage}

func readBatchMessage(c *cursor, b *BatchMessage) error {
	err := c.record(func(name []byte) (err error) {
		switch string(name) {
		case "messages":
			b.Messages, err = c.list()
		case "stop_reason":
			b.StopReason, err = c.value()
		case "pending_interaction":
			b.PendingInteraction, err = c.document()
		case "session_id":
			b.SessionID, err = c.word()
		case "turn_id":
			b.TurnID, err = c.word()
		case "attempt":
			b.Attempt, err = c.integer(64)
		case "state":
			b.State, err = c.word()
		case "reason":
			b.Reason, err = c.text()
		case "seq":
			b.Seq, err = c.integer(64)
		case "pending_interactions":
			b.PendingInteractions, err = c.list()
		case "tool_results":
			b.ToolResults, err = c.list()
		case "error":
			b.Error, err = c.text()
		case "usage":
			b.Usage, err = c.document()
		case "malformed_events":
			b.MalformedEvents, err = c.integer(64)
		default:
			err = c.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	if b.SessionID == "" || b.TurnID == "" {
		return fmt.Errorf("%w: field session_id or turn_id: missing", ErrType)
	}
	switch b.State {
	case BatchComplete, BatchFailed, BatchExpired, BatchCancelled:
		return nil
	default:
		return fmt.Errorf("%w: field state: unknown", ErrType)
	}
}

func writeBatchMessage(w *writer, b BatchMessage) {
	array := func(name string, v Raw) {
		if v == nil {
			v = Raw("[]")
		}
		w.raw(name, v)
	}
	w.grow(len(b.Messages) + len(b.PendingInteraction) + len(b.PendingInteractions) + len(b.ToolResults))
	w.open()
	array("messages", b.Messages)
	w.raw("stop_reason", b.StopReason)
	w.raw("pending_interaction", b.PendingInteraction)
	w.word("session_id", b.SessionID)
	w.word("turn_id", b.TurnID)
	w.integer("attempt", b.Attempt)
	w.word("state", b.State)
	w.text("reason", b.Reason)
	w.integer("seq", b.Seq)
	array("pending_interactions", b.PendingInteractions)
	array("tool_results", b.ToolResults)
	w.text("error", b.Error)
	w.raw("usage", b.Usage)
	w.integer("malformed_events", b.MalformedEvents)
	w.close()
}
