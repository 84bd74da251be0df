package topics

var toolResultsWire = wire[ToolResults]{depth: MaxDepth, read: readToolResults, write: writeToolResults}

func readToolResults(c *cursor, t *ToolResults) error {
	return c.record(func(name []byte) (err error) {
		switch string(name) {
		case "session_id":
			t.SessionID, err = c.text()
		case "user_id":
			t.UserID, err = c.text()
		case "expected_count":
			t.ExpectedCount, err = c.integer(32)
		case "results":
			t.Results, _, err = readList(c, readToolResult)
		case "expected":
			t.Expected, _, err = readList(c, readExpected)
		case "deadline_ms":
			t.DeadlineMS, err = c.integer(64)
		case "emitted":
			t.Emitted, err = c.boolean()
		case "timestamp":
			t.Timestamp, err = c.text()
		case "complete":
			t.Complete, err = c.boolean()
		default:
			err = c.skip()
		}
		return err
	})
}

func readExpected(c *cursor, t *ExpectedTool) error {
	return c.object(func(name []byte) (err error) {
		switch string(name) {
		case "tool_use_id":
			t.ToolUseID, err = c.text()
		case "name":
			t.Name, err = c.text()
		default:
			err = c.skip()
		}
		return err
	})
}

// readList reads an array of objects; nil for null. It leaves out the elements that are null and returns their indexes.
func readList[T any](c *cursor, element func(*cursor, *T) error) (list []T, nulls []int, err error) {
	list = []T{}
	null, err := c.array(func() error {
		if c.dec.PeekKind() == 'n' {
			nulls = append(nulls, len(list)+len(nulls))
			return c.skip()
		}
		if cap(list) == 0 {
			list = make([]T, 0, 2) // models rarely call more than two tools at once
		}
		list = append(list, *new(T))
		return element(c, &list[len(list)-1])
	}, nil)
	if err != nil || null {
		return nil, nil, err
	}
	return list, nulls, nil
}

func writeToolResults(w *writer, t ToolResults) {
	n := 0
	for _, r := range t.Results {
		n += len(r.Result)
	}
	w.grow(n)
	w.open()
	w.text("session_id", t.SessionID)
	w.text("user_id", t.UserID)
	w.integer("expected_count", t.ExpectedCount)
	writeList(w, "results", t.Results, writeToolResult)
	writeList(w, "expected", t.Expected, writeExpected)
	w.integer("deadline_ms", t.DeadlineMS)
	w.boolean("emitted", t.Emitted)
	w.text("timestamp", t.Timestamp)
	w.boolean("complete", t.Complete)
	w.close()
}

func writeExpected(w *writer, t ExpectedTool) {
	w.open()
	w.text("tool_use_id", t.ToolUseID)
	w.text("name", t.Name)
	w.close()
}
