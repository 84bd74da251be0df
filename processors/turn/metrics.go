package turn

// Metrics are callbacks for events of turns. They are called from several goroutines and must not block. Any may be nil.
// After a crash an event can be reported again.
type Metrics struct {
	// HistoryHidden is called when the oldest exchanges of a session were hidden from the model, see Config.HistoryLimit.
	HistoryHidden func(session string, h Hidden)
	// Controlled is called for each record of session-control. action is topics.ActionCancel, ActionPurge or ActionEnd. A cancel
	// without a message to cancel and an end of a session that cannot end are reported too; they are dead-lettered.
	Controlled func(session, action string)
}
