package topics

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

var controlWire = tagged(checkControl)

// checkControl rejects an unknown action, so that it is dead-lettered and its sender can see that nothing was done.
func checkControl(r *Control) error {
	if r.Action != ActionCancel && r.Action != ActionPurge && r.Action != ActionEnd {
		return wrongType("action", "want "+ActionCancel+", "+ActionPurge+" or "+ActionEnd)
	}
	return nil
}
