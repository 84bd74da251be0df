package turn

// Metrics are callbacks for events of turns. They are called from several goroutines and must not block. Any may be nil.
// After a crash an event can be reported again.
type Metrics struct {
	// HistoryHidden is called when the oldest exchanges of a session were hidden from the model, see Config.HistoryLimit.
	HistoryHidden func(session string, h Hidden)
	// controlled is called for each record of session-control. action is "cancel", "purge" or "end". A cancel
	// for which there is no message, and an end of a session that cannot end, are reported too, and dead-lettered.
	Controlled func(session, action string)
}
