package topics

import "fmt"

// The states of a batch. A turn that is still open has none.
const (
	BatchComplete  = "complete"
	BatchFailed    = "failed"
	BatchExpired   = "expired"
	BatchCancelled = "cancelled"
)

// Why a batch is not complete: a closed list.
const (
	// ReasonGap: events were missing. The batch is what came before them.
	ReasonGap = "gap"
	// ReasonTooLarge: the turn outgrew its limit, or its batch a record. The batch is what came before that.
	ReasonTooLarge = "too_large"
	// ReasonRunFailed: the run said so, in its terminal record or by an error event. BatchMessage.Error has its text.
	ReasonRunFailed = "run_failed"
	// ReasonSilence: nothing came any more.
	ReasonSilence = "silence"
	// ReasonTooManyTurns: of a session's open turns it was silent for the longest time when one too many began.
	ReasonTooManyTurns = "too_many_turns"
	// ReasonCancelled: a session control, or the run itself, cancelled it.
	ReasonCancelled = "cancelled"
	// ReasonInternal: kept events could not be read again. The batch is what came before them.
	ReasonInternal = "internal"
)

// BatchMessage is the value of {agent}-batch-messages: a folded turn, one record a turn. Its first three fields are
// the batch that an agent answers with, nulls kept.
type BatchMessage struct {
	Messages           Raw // an array
	StopReason         Raw // any JSON value, or nil
	PendingInteraction Raw // an object, or nil

	SessionID string
	TurnID    string
	Attempt   int64
	// State is how the turn ended, Reason why it is not complete; nil where it is.
	State  string
	Reason *string
	// Seq is that of the last record that was taken in order. Where Reason is too_large the last ones may be missing.
	Seq int64

	// What the messages do not say.
	PendingInteractions Raw // an array of those that nobody has answered
	ToolResults         Raw // an array of {message, denied, data, render}, for the results that have any of it
	Error               *string
	Usage               Raw // an object, or nil
	// MalformedEvents counts the events that were left out.
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
