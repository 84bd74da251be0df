package websocket

import (
	"container/list"
	"sync"

	ws "github.com/coder/websocket"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// hub knows who has subscribed to what, and hands out frames. One lock guards all of it, and nothing waits under it: so
// a client that comes while another one goes is not lost (D-43), and one that ends meets nobody else (D-07).
type hub struct {
	rules *rules
	feeds map[string]feed

	mu         sync.Mutex
	clients    map[*client]struct{}
	gone       sync.WaitGroup // clients
	closed     bool
	sessions   map[string]*session
	idle       *list.List // of *session: nobody has subscribed, the longest first
	remembered *list.List // of *entry, oldest first
	bytes      int        // of them
}

func newHub(r *rules, names [feedCount]string) *hub {
	h := &hub{
		rules: r, feeds: map[string]feed{}, clients: map[*client]struct{}{}, sessions: map[string]*session{},
		idle: list.New(), remembered: list.New(),
	}
	for f, name := range names {
		h.feeds[name] = feed(f)
	}
	return h
}

// admit counts a client in; false says that there is no place. Whoever is admitted leaves.
func (h *hub) admit(c *client) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.clients) >= h.rules.clients {
		return false
	}
	h.clients[c] = struct{}{}
	h.gone.Add(1)
	return true
}

func (h *hub) leave(c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unsubscribe(c)
	delete(h.clients, c)
	h.gone.Done()
}

// close ends all clients and admits no more. It returns when they are gone.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	for c := range h.clients {
		c.finish(ws.StatusGoingAway, reasonStopping)
	}
	h.mu.Unlock()
	h.gone.Wait()
}

// subscribe gives a client what its session gets from now on, in place of what it got.
func (h *hub) subscribe(c *client, session string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.join(c, session)
}

// hold does the same, but has the client wait for release, and returns the frames behind last where they are
// remembered.
func (h *hub) hold(c *client, session, last string) (missed []*frame, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.join(c, session)
	c.holding = true
	return s.since(last)
}

func (h *hub) join(c *client, id string) *session {
	c.holding, c.held, c.bytes, c.floor = false, nil, 0, floor{}
	if c.session != nil && c.session.id == id {
		return c.session
	}
	h.unsubscribe(c)
	s := h.sessions[id]
	switch {
	case s == nil:
		s = &session{
			id: id, subscribers: map[*client]struct{}{},
			place: eventID{session: digestOf(id), born: clampMS(h.rules.clock.Now())},
		}
		h.sessions[id] = s
	case s.idle != nil:
		h.idle.Remove(s.idle)
		s.idle = nil
	}
	s.subscribers[c] = struct{}{}
	c.session = s
	return s
}

func (h *hub) unsubscribe(c *client) {
	s := c.session
	if s == nil {
		return
	}
	c.session = nil
	delete(s.subscribers, c)
	if len(s.subscribers) > 0 {
		return
	}
	s.idle = h.idle.PushBack(s)
	if h.idle.Len() <= h.rules.replay.Sessions {
		return
	}
	oldest := h.idle.Remove(h.idle.Front()).(*session)
	for len(oldest.recent) > 0 {
		h.forget(oldest)
	}
	delete(h.sessions, oldest.id)
}

// release gives a client what it was held back from, then what comes. stop ends it.
func (h *hub) release(c *client, f floor, stop <-chan struct{}) {
	for {
		h.mu.Lock()
		c.floor = f
		held := c.held
		c.held, c.bytes = nil, 0
		c.holding = len(held) > 0
		h.mu.Unlock()
		if len(held) == 0 {
			return
		}
		for _, frame := range held {
			if !f.above(frame) && !c.queue.wait(stop, item{text: frame.text}) {
				return
			}
		}
	}
}

// take shows a record to the clients of its session. A record that belongs to none, or to one without clients, is
// passed over.
func (h *hub) take(r processors.Inbound) {
	f, ok := h.feeds[r.Topic]
	if !ok || r.Key == nil {
		return
	}
	id := string(r.Key)
	if f == feedLatency {
		id = sessionIn(r.Value) // its key is a tool
	}
	if !h.knows(id) {
		return
	}
	record := show(f, id, r)
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[id]
	if s == nil {
		return
	}
	answered := record.chat != nil && s.answered(record.output)
	for _, frame := range record.stamp(id, s.place, &s.seen, answered) {
		h.remember(s, frame)
		for c := range s.subscribers {
			c.offer(frame)
		}
	}
}

func sessionIn(value []byte) string {
	id := members(topics.Raw(value), "session_id")["session_id"]
	text, _ := jsontext.AppendUnquote(nil, id)
	return string(text)
}

func (h *hub) knows(session string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions[session] != nil
}

// deliver puts an item before all clients of a session; it returns before how many.
func (h *hub) deliver(session string, i item) (clients int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[session]
	if s == nil {
		return 0
	}
	for c := range s.subscribers {
		if c.queue.put(i) {
			clients++
		} else {
			c.finish(ws.StatusTryAgainLater, reasonSlow)
		}
	}
	return clients
}

// remember keeps a frame for those who come back, within the limits.
func (h *hub) remember(s *session, f *frame) {
	e := &entry{session: s, frame: f}
	e.among = h.remembered.PushBack(e)
	s.recent = append(s.recent, e)
	s.bytes, h.bytes = s.bytes+len(f.text), h.bytes+len(f.text)
	for len(s.recent) > h.rules.replay.Frames || s.bytes > h.rules.replay.Bytes {
		h.forget(s)
	}
	for h.bytes > h.rules.replay.TotalBytes {
		h.forget(h.remembered.Front().Value.(*entry).session)
	}
}

// forget drops a session's oldest frame. The oldest of all is the oldest of its session too.
func (h *hub) forget(s *session) {
	e := s.recent[0]
	s.recent[0] = nil
	s.recent = s.recent[1:]
	s.forgotten = e.frame.id
	h.remembered.Remove(e.among)
	s.bytes, h.bytes = s.bytes-len(e.frame.text), h.bytes-len(e.frame.text)
}
