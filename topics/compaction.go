package topics

import "fmt"

var compactionRequestWire = wire[CompactionRequest]{depth: MaxDepth, read: readCompactionRequest, write: writeCompactionRequest}

func readCompactionRequest(c *cursor, r *CompactionRequest) error {
	return c.record(func(name []byte) (err error) {
		switch string(name) {
		case "session_id":
			r.SessionID, err = c.text()
		case "user_id":
			r.UserID, err = c.text()
		case "compaction_id":
			r.CompactionID, err = c.word()
		case "messages":
			r.Messages, err = c.list()
		case "timestamp":
			r.Timestamp, err = c.text()
		default:
			err = c.skip()
		}
		return err
	})
}

func writeCompactionRequest(w *writer, r CompactionRequest) {
	w.grow(len(r.Messages))
	w.open()
	w.text("session_id", r.SessionID)
	w.text("user_id", r.UserID)
	w.word("compaction_id", r.CompactionID)
	w.raw("messages", r.Messages)
	w.text("timestamp", r.Timestamp)
	w.close()
}

var compactionResultWire = wire[CompactionResult]{depth: MaxDepth, read: readCompactionResult, write: writeCompactionResult}

// readCompactionResult rejects a result that names no request, because no turn can use it.
func readCompactionResult(c *cursor, r *CompactionResult) error {
	err := c.record(func(name []byte) (err error) {
		switch string(name) {
		case "session_id":
			r.SessionID, err = c.text()
		case "compaction_id":
			r.CompactionID, err = c.word()
		case "summary":
			r.Summary, err = c.word()
		case "input_tokens":
			r.InputTokens, err = c.integer(32)
		case "output_tokens":
			r.OutputTokens, err = c.integer(32)
		case "cost":
			r.Cost, err = c.double()
		case "error":
			r.Error, err = c.text()
		case "timestamp":
			r.Timestamp, err = c.text()
		default:
			err = c.skip()
		}
		return err
	})
	if err == nil && r.CompactionID == "" {
		return fmt.Errorf("%w: field compaction_id: missing", ErrType)
	}
	return err
}

func writeCompactionResult(w *writer, r CompactionResult) {
	w.open()
	w.text("session_id", r.SessionID)
	w.word("compaction_id", r.CompactionID)
	w.word("summary", r.Summary)
	w.integer("input_tokens", r.InputTokens)
	w.integer("output_tokens", r.OutputTokens)
	w.double("cost", r.Cost)
	w.text("error", r.Error)
	w.text("timestamp", r.Timestamp)
	w.close()
}
