package topics

var enrichedWire = wire[EnrichedMessage]{depth: MaxDepth, read: readEnriched, write: writeEnriched}

func readEnriched(c *cursor, m *EnrichedMessage) error {
	err := c.record(func(name []byte) (err error) {
		switch string(name) {
		case "session_id":
			m.SessionID, err = c.text()
		case "user_id":
			m.UserID, err = c.text()
		case "cost":
			m.Cost, err = c.double()
		case "history":
			m.History, err = c.list()
		case "latest_input":
			m.LatestInput, err = c.document()
		case "memoir_context":
			m.MemoirContext, err = c.text()
		case "timestamp":
			m.Timestamp, err = c.text()
		case "latestInput":
			m.BothSpellings = true
			err = c.skip()
		case "ephemeral_prompt":
			m.EphemeralPrompt, err = c.word()
		case "turn_id":
			m.TurnID, err = c.word()
		case "step":
			m.Step, err = c.ordinal()
		default:
			err = c.skip()
		}
		return err
	})
	return err
}

func writeEnriched(w *writer, m EnrichedMessage) {
	w.grow(len(m.History) + len(m.LatestInput))
	history := m.History
	if history == nil {
		history = Raw("[]")
	}
	w.open()
	w.text("session_id", m.SessionID)
	w.text("user_id", m.UserID)
	w.double("cost", m.Cost)
	w.raw("history", history)
	w.raw("latest_input", m.LatestInput)
	w.text("memoir_context", m.MemoirContext)
	w.text("timestamp", m.Timestamp)
	w.some("ephemeral_prompt", m.EphemeralPrompt)
	if m.TurnID != "" {
		w.word("turn_id", m.TurnID)
		w.integer("step", m.Step)
	}
	if m.BothSpellings {
		w.grow(len(m.LatestInput))
		w.text("userId", m.UserID)
		w.raw("latestInput", m.LatestInput)
		w.text("memoirContext", m.MemoirContext)
	}
	w.close()
}
