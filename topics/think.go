package topics

import "cmp"

var thinkWire = wire[ThinkResponse]{depth: MaxDepth, read: readThink, write: writeThink}

// readThink accepts the current field names, those of older FlightDeck images, and the camelCase names of the Python and
// TypeScript model workers. If a record has two names of one field, the later one counts.
//
// In a record with prevSessionCost, cost is that of the step alone. The total is their sum.
func readThink(c *cursor, t *ThinkResponse) error {
	total, previousApart := false, false
	err := c.record(func(name []byte) error {
		switch string(name) {
		case "total_session_cost":
			total = true
		case "cost":
			total = false
		case "prevSessionCost":
			previousApart = true
		}
		return t.member(c, string(name))
	})
	if previousApart && !total {
		t.TotalSessionCost = sum(t.PreviousSessionCost, t.TotalSessionCost)
	}
	if err == nil && t.Known == 0 {
		// An empty response would end the turn and clear the session's history.
		return ErrUnknown
	}
	return err
}

func (t *ThinkResponse) member(c *cursor, name string) (err error) {
	t.Known++
	switch name {
	case "session_id", "sessionId":
		t.SessionID, err = c.text()
	case "user_id", "userId":
		t.UserID, err = c.text()
	case "total_session_cost", "cost":
		t.TotalSessionCost, err = c.double()
	case "previous_session_cost", "prev_session_cost", "prevSessionCost":
		t.PreviousSessionCost, err = c.double()
	case "think_cost":
		t.ThinkCost, err = c.double()
	case "think_input_tokens", "input_tokens", "inputTokens":
		t.ThinkInputTokens, err = c.integer(32)
	case "think_output_tokens", "output_tokens", "outputTokens":
		t.ThinkOutputTokens, err = c.integer(32)
	case "previous_messages", "previousMessages":
		t.PreviousMessages, err = c.list()
	case "last_input_message", "lastInputMessage":
		t.LastInputMessage, err = c.document()
	case "last_input_response", "messages", "lastInputResponse":
		t.OldMessages = name == "messages"
		t.LastInputResponse, err = c.list()
	case "tool_uses", "toolUses":
		t.ToolUses, t.NullToolUses, err = readList(c, readCalledTool)
	case "end_turn", "endTurn":
		t.EndTurn, err = c.boolean()
	case "compaction":
		t.Compaction, err = c.boolean()
	case "compaction_input_tokens":
		t.CompactionInputTokens, err = c.integer(32)
	case "compaction_output_tokens":
		t.CompactionOutputTokens, err = c.integer(32)
	case "compaction_cost":
		var cost *float64
		if cost, err = c.double(); cost != nil {
			t.CompactionCost = *cost
		} else {
			t.CompactionCost = 0
		}
	case "timestamp":
		t.Timestamp, err = c.text()
	default:
		t.Known--
		err = c.skip()
	}
	return err
}

func writeThink(w *writer, t ThinkResponse) {
	w.grow(len(t.PreviousMessages) + len(t.LastInputMessage) + len(t.LastInputResponse))
	w.open()
	w.text("session_id", t.SessionID)
	w.text("user_id", t.UserID)
	w.double("total_session_cost", t.TotalSessionCost)
	w.double("previous_session_cost", t.PreviousSessionCost)
	w.double("think_cost", t.ThinkCost)
	w.integer("think_input_tokens", t.ThinkInputTokens)
	w.integer("think_output_tokens", t.ThinkOutputTokens)
	w.raw("previous_messages", t.PreviousMessages)
	w.raw("last_input_message", t.LastInputMessage)
	w.raw("last_input_response", t.LastInputResponse)
	if t.ToolUses == nil {
		w.raw("tool_uses", nil)
	} else {
		writeList(w, "tool_uses", t.ToolUses, writeToolUse)
	}
	w.boolean("end_turn", t.EndTurn)
	w.boolean("compaction", t.Compaction)
	w.integer("compaction_input_tokens", t.CompactionInputTokens)
	w.integer("compaction_output_tokens", t.CompactionOutputTokens)
	w.double("compaction_cost", &t.CompactionCost)
	w.text("timestamp", t.Timestamp)
	w.close()
}

// sum returns the sum of two costs. An unknown cost adds nothing; the sum of two unknown ones is unknown.
func sum(a, b *float64) *float64 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	total := *a + *b
	return &total
}
