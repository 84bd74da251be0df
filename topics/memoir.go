package topics

import "github.com/turntable-streams/turntable/codec"

// This file reads and writes the records of the topics that the turn does not use.

var (
	snapshotWire    = wire[MemoirSnapshot]{depth: MaxDepth, read: readSnapshot, write: writeSnapshot}
	sessionEndWire  = wire[SessionEnd]{depth: MaxDepth, read: readSessionEnd, write: writeSessionEnd}
	latencyWire     = wire[ToolLatency]{depth: MaxDepth, read: readLatency, write: writeLatency}
	sessionCostWire = wire[SessionCost]{depth: MaxDepth, read: readSessionCost, write: writeSessionCost}
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

func readSessionEnd(c *cursor, _ *SessionEnd) error {
	return c.record(func([]byte) error { return c.skip() })
}

func writeSessionEnd(w *writer, _ SessionEnd) { w.open(); w.close() }

func readLatency(c *cursor, l *ToolLatency) error {
	return c.record(func(name []byte) (err error) {
		switch string(name) {
		case "tool_name":
			l.ToolName, err = c.text()
		case "latency_ms":
			l.LatencyMS, err = c.integer(64)
		case "session_id":
			l.SessionID, err = c.text()
		case "timestamp":
			l.Timestamp, err = c.text()
		case "status":
			l.Status, err = c.word()
		default:
			err = c.skip()
		}
		return err
	})
}

func writeLatency(w *writer, l ToolLatency) {
	w.open()
	w.text("tool_name", l.ToolName)
	w.integer("latency_ms", l.LatencyMS)
	w.text("session_id", l.SessionID)
	w.text("timestamp", l.Timestamp)
	w.some("status", l.Status)
	w.close()
}

func readSessionCost(c *cursor, s *SessionCost) error {
	return c.record(func(name []byte) (err error) {
		switch string(name) {
		case "session_id":
			s.SessionID, err = c.text()
		case "user_id":
			s.UserID, err = c.text()
		case "llm_calls":
			s.LLMCalls, err = c.integer(32)
		case "total_input_tokens":
			s.TotalInputTokens, err = c.integer(32)
		case "total_output_tokens":
			s.TotalOutputTokens, err = c.integer(32)
		case "estimated_cost_usd":
			s.EstimatedCostUSD, err = c.double()
		case "timestamp":
			s.Timestamp, err = c.text()
		default:
			err = c.skip()
		}
		return err
	})
}

func writeSessionCost(w *writer, s SessionCost) {
	w.open()
	w.text("session_id", s.SessionID)
	w.text("user_id", s.UserID)
	w.integer("llm_calls", s.LLMCalls)
	w.integer("total_input_tokens", s.TotalInputTokens)
	w.integer("total_output_tokens", s.TotalOutputTokens)
	w.double("estimated_cost_usd", s.EstimatedCostUSD)
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
