package websocket

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/socket"
	"github.com/turntable-streams/turntable/topics"
)

// maxHeld bounds the records of all sessions that wait for their causes, in bytes. Beyond it none waits.
const maxHeld = 64 << 20

// onRecord sends a record to the clients of its session after the record that caused it (see waiting). It skips records
// without a session and records of sessions that no one follows.
func (h *hub) onRecord(r processors.Inbound) {
	f, ok := h.feeds[r.Topic]
	if !ok || r.Key == nil {
		return
	}
	id := string(r.Key)
	if f == feedLatency {
		id = sessionIn(r.Value) // the record's key is a tool
	}
	if !h.follows(id) {
		return
	}
	record := render(f, id, r)
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[id]
	if s == nil {
		s = h.observe(id, r.Timestamp)
	}
	if s == nil {
		return
	}
	now := h.config.Clock.Now()
	h.held += record.size()
	s.waiting.add(record, now)
	h.flush(s, now, waitingLimits)
}

// sessionIn returns the session_id in a record's value, empty if there is none.
func sessionIn(value []byte) string {
	id := members(topics.Raw(value), "session_id")["session_id"]
	text, _ := jsontext.AppendUnquote(nil, id)
	return string(text)
}

// follows reports whether a session has clients, had them lately, or may be seen by others.
func (h *hub) follows(session string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions[session] != nil || h.observing()
}

// flush sends the records of a session that need not wait.
func (h *hub) flush(s *session, now time.Time, l socket.Limits) {
	if h.held > maxHeld {
		l = socket.Limits{}
	}
	for r, ok := s.waiting.next(now, l); ok; r, ok = s.waiting.next(now, l) {
		h.held -= r.size()
		h.send(s, r)
	}
	if s.waiting.count > 0 {
		h.holding[s] = struct{}{}
	} else {
		delete(h.holding, s)
	}
}

// flushDue sends the records that have waited for their causes too long. It returns when ctx ends.
func (h *hub) flushDue(ctx context.Context) {
	tick := h.config.Clock.NewTicker(causeTick)
	defer tick.Stop()
	for {
		select {
		case <-tick.C():
		case <-ctx.Done():
			return
		}
		h.flushHolding()
	}
}

func (h *hub) flushHolding() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.config.Clock.Now()
	for s := range h.holding {
		h.flush(s, now, waitingLimits)
	}
}

// send sends a record to the clients that may see it.
func (h *hub) send(s *session, r rendered) {
	answered := r.chat != nil && s.answered(r.output)
	for _, frame := range r.frames(s.id, h.signer, s.template, &s.seen, answered) {
		if s.owner != nil {
			h.remember(s, frame)
		}
		for c := range s.subscribers {
			c.offer(frame)
		}
		for c := range h.others(s, frame) {
			if c.session != s {
				c.Show(socket.Frame{Text: frame.text})
			}
		}
	}
}
