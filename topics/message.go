package topics

import "iter"

var messageWire = wire[Message]{depth: MaxValueDepth, read: readMessage, write: writeMessage}

func readMessage(c *cursor, m *Message) error {
	return c.record(func(name []byte) error { return m.member(c, string(name)) })
}

func (m *Message) member(c *cursor, name string) (err error) {
	switch name {
	case "session_id":
		m.SessionID, err = c.text()
	case "user_id":
		m.UserID, err = c.text()
	case "role":
		m.Role, err = c.text()
	case "content":
		m.Content, err = c.value()
	case "timestamp":
		m.Timestamp, err = c.text()
	case "metadata":
		m.Metadata, err = c.document()
	default:
		err = c.skip()
	}
	return err
}

func writeMessage(w *writer, m Message) {
	w.grow(len(m.Content) + len(m.Metadata))
	w.open()
	w.text("session_id", m.SessionID)
	w.text("user_id", m.UserID)
	w.text("role", m.Role)
	w.raw("content", m.Content)
	w.text("timestamp", m.Timestamp)
	w.raw("metadata", m.Metadata)
	w.close()
}

// DecodeMessage decodes a message that is embedded in another record, such as an element of a history. It accepts the
// field names of message-input and the camelCase names of FlightDeck's Python and TypeScript model workers. For nil it
// returns ErrNull. The message aliases raw.
func DecodeMessage(raw Raw) (Message, error) {
	if raw == nil {
		return Message{}, ErrNull
	}
	var m Message
	err := read(raw, MaxDepth, func(c *cursor) error {
		m = Message{}
		return c.record(func(name []byte) error {
			switch n := string(name); n {
			case "sessionId":
				return m.member(c, "session_id")
			case "userId":
				return m.member(c, "user_id")
			default:
				return m.member(c, n)
			}
		})
	})
	if err != nil {
		return Message{}, err
	}
	return m, nil
}

// EncodeMessage encodes a message for embedding in another record.
func EncodeMessage(m Message) Raw {
	return encode(m, writeMessage)
}

// Messages iterates over the messages of an array in order and skips null elements. It stops after the first error, which
// is that of the array or of an element.
func Messages(array Raw) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		elements, err := Elements(array)
		if err != nil {
			yield(Message{}, err)
			return
		}
		for _, e := range elements {
			if e == nil {
				continue
			}
			m, err := DecodeMessage(e)
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}
