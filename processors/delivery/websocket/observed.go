package websocket

import (
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/socket"
)

// maxObserved bounds the sessions in observed.
const maxObserved = 4096

// observed has the sessions that no client has subscribed to and that others see. Their frames are not kept in memory.
type observed struct {
	*simplelru.LRU[string, *session]
}

func newObserved() observed {
	sessions, _ := simplelru.NewLRU[string, *session](maxObserved, nil) // its only error is a size of 0
	return observed{sessions}
}

// remove removes a session and returns it, nil if there is none.
func (o observed) remove(id string) *session {
	s, _ := o.Peek(id)
	o.Remove(id)
	return s
}

// observing reports whether a client sees sessions to which it has not subscribed.
func (h *hub) observing() bool {
	return len(h.operators) > 0 || h.config.EverySessionToEveryone && len(h.clients) > 0
}

// observedSlack is how much earlier the other records of a session may have been written than the first that is observed.
const observedSlack = time.Second

// observe returns a session that has no clients, nil if no one sees it. at is the timestamp of the record that is read. A session
// that is new begins before that record: a client that resumes after it has not seen what was written next to it.
func (h *hub) observe(id string, at time.Time) *session {
	if !h.observing() || processors.CheckSession(id) != nil {
		return nil
	}
	if s, ok := h.observed.Get(id); ok {
		return s
	}
	now := h.config.Clock.Now()
	if h.observed.Len() >= maxObserved {
		_, oldest, _ := h.observed.RemoveOldest()
		h.flush(oldest, now, socket.Limits{})
	}
	if at.After(now) {
		at = now
	}
	s := newSession(id, at.Add(-observedSlack))
	h.observed.Add(id, s)
	return s
}

// watch replaces a client's subscription by that of an operator: the client receives the frames of all sessions from now on.
func (h *hub) watch(c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.receiveNew()
	h.unsubscribe(c)
	h.operators[c] = struct{}{}
}

// unobserve ends a client's subscription as an operator. When no one sees all sessions, the hub forgets those without
// clients.
func (h *hub) unobserve(c *client) {
	delete(h.operators, c)
	if h.observing() || h.observed.Len() == 0 {
		return
	}
	for _, s := range h.observed.Values() {
		h.held -= s.waiting.bytes
		delete(h.holding, s)
	}
	h.observed.Purge()
}

// others returns the clients that see a frame without having subscribed to its session. Subscribers may be among them.
func (h *hub) others(s *session, f *frame) map[*client]struct{} {
	if h.config.EverySessionToEveryone && (f.kind == kindEvent || len(s.subscribers) == 0) {
		return h.clients
	}
	return h.operators
}
