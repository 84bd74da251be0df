package topics

import "fmt"

// The actions of a Control.
const (
	// ActionCancel ends the open turn, or the one that RequestID names, with an error output.
	ActionCancel = "cancel"
	// ActionPurge ends the session and deletes its state, including its deadlines and queued messages.
	ActionPurge = "purge"
	// ActionEnd ends a session of turn.Config.Memoir now, as inactivity would end it later: its conversation goes to the user's
	// memory. A session with an open turn, gate or route is not ended.
	ActionEnd = "end"
)

var controlWire = wire[Control]{depth: MaxDepth, read: readControl, write: writeControl}

// readControl rejects an unknown action, so that it is dead-lettered and its sender can see that nothing was done.
func readControl(c *cursor, r *Control) error {
	err := c.record(func(name []byte) (err error) {
		switch string(name) {
		case "action":
			r.Action, err = c.word()
		case "request_id":
			r.RequestID, err = c.text()
		case "reason":
			r.Reason, err = c.text()
		default:
			err = c.skip()
		}
		return err
	})
	if err == nil && r.Action != ActionCancel && r.Action != ActionPurge && r.Action != ActionEnd {
		return fmt.Errorf("%w: field action: want %s, %s or %s", ErrType, ActionCancel, ActionPurge, ActionEnd)
	}
	return err
}

func writeControl(w *writer, r Control) {
	w.open()
	w.word("action", r.Action)
	w.text("request_id", r.RequestID)
	w.text("reason", r.Reason)
	w.close()
}
