package topics

var outputWire = wire[Output]{depth: MaxDepth, read: readOutput, write: writeOutput}

func readOutput(c *cursor, o *Output) error {
	return c.record(func(name []byte) (err error) {
		switch string(name) {
		case "session_id":
			o.SessionID, err = c.text()
		case "user_id":
			o.UserID, err = c.text()
		case "content":
			o.Content, err = c.word()
		case "input_tokens":
			o.InputTokens, err = c.integer(32)
		case "output_tokens":
			o.OutputTokens, err = c.integer(32)
		case "cost":
			o.Cost, err = c.double()
		case "source_agent":
			o.SourceAgent, err = c.word()
		case "reply_to":
			o.ReplyTo, err = c.document()
		case "timestamp":
			o.Timestamp, err = c.word()
		case "request_id":
			o.RequestID, err = c.text()
		case "status":
			o.Status, err = c.text()
		case "error":
			o.Error, err = readOutputError(c)
		default:
			err = c.skip()
		}
		return err
	})
}

func readOutputError(c *cursor) (*OutputError, error) {
	if c.dec.PeekKind() == 'n' {
		return nil, c.skip()
	}
	var e OutputError
	err := c.object(func(name []byte) (err error) {
		switch string(name) {
		case "code":
			var code string
			code, err = c.word()
			e.Code = Code(code)
		case "message":
			e.Message, err = c.word()
		default:
			err = c.skip()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &e, nil
}

// writeOutput omits null fields, as FlightDeck does for this record only.
func writeOutput(w *writer, o Output) {
	w.grow(len(o.Content) + len(o.ReplyTo))
	w.open()
	w.present("session_id", o.SessionID)
	w.present("user_id", o.UserID)
	w.word("content", o.Content)
	w.integer("input_tokens", o.InputTokens)
	w.integer("output_tokens", o.OutputTokens)
	if o.Cost != nil {
		w.double("cost", o.Cost)
	}
	w.word("source_agent", o.SourceAgent)
	if o.ReplyTo != nil {
		w.raw("reply_to", o.ReplyTo)
	}
	w.word("timestamp", o.Timestamp)
	w.present("request_id", o.RequestID)
	w.present("status", o.Status)
	if o.Error != nil {
		w.name("error")
		w.open()
		w.word("code", string(o.Error.Code))
		w.word("message", o.Error.Message)
		w.close()
	}
	w.close()
}

// present writes a text unless it is nil.
func (w *writer) present(name string, v *string) {
	if v != nil {
		w.word(name, *v)
	}
}
