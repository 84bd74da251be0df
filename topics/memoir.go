package topics

import "github.com/turntable-streams/turntable/codec"

// This file reads and writes the records of the topics that the turn does not use.

var (
	snapshotWire    = wire[MemoirSnapshot]{depth: MaxDepth, read: readSnapshot, write: writeSnapshot}
	sessionEndWire  = tagged[SessionEnd](nil)
	latencyWire     = tagged[ToolLatency](nil)
	sessionCostWire = tagged[SessionCost](nil)
	rawWire         = wire[Raw]{depth: MaxDepth, read: readRaw, write: writeRaw}
)

func readSnapshot(c *cursor, s *MemoirSnapshot) error {
	return c.record(func(name []byte) (err error) {
		switch string(name) {
		case "session_id":
			s.SessionID, err = c.text()
		case "user_id":
			s.UserID, err = c.text()
		case "memoir_context":
			s.MemoirContext, err = c.word()
		case "think_response":
			s.ThinkResponse, s.Messages = nil, nil
			if c.dec.PeekKind() == 'n' {
				return c.skip()
			}
			var t ThinkResponse
			err = c.object(func(name []byte) (err error) {
				if string(name) == "messages" { // elsewhere it is an older name of last_input_response
					s.Messages, err = c.list()
					return err
				}
				return t.member(c, string(name))
			})
			s.ThinkResponse = &t
		case "timestamp":
			s.Timestamp, err = c.text()
		default:
			err = c.skip()
		}
		return err
	})
}

func writeSnapshot(w *writer, s MemoirSnapshot) {
	w.open()
	w.text("session_id", s.SessionID)
	w.text("user_id", s.UserID)
	w.word("memoir_context", s.MemoirContext)
	if s.ThinkResponse == nil {
		w.raw("think_response", nil)
	} else {
		w.grow(len(s.Messages))
		w.name("think_response")
		writeThink(w, *s.ThinkResponse)
		if s.Messages != nil {
			w.b = w.b[:len(w.b)-1] // the object continues
			w.raw("messages", s.Messages)
			w.close()
		}
	}
	w.text("timestamp", s.Timestamp)
	w.close()
}

func readRaw(c *cursor, r *Raw) (err error) {
	*r, err = c.value()
	return err
}

func writeRaw(w *writer, r Raw) {
	w.grow(len(r))
	w.b = appendRaw(w.b, r)
}

var _ codec.Format[Raw] = rawWire
