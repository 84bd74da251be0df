package websocket

import (
	"sync"

	ws "github.com/coder/websocket"

	"github.com/turntable-streams/turntable/processors/internal/socket"
)

// hub holds the subscriptions and distributes frames. One lock guards all of it and no operation blocks while holding it.
// So a client that subscribes while the session's last client leaves loses no frame, and a connection that fails affects no
// other client.
type hub struct {
	config *Config
	signer signer
	feeds  map[string]feed

	mu       sync.Mutex
	clients  map[*client]struct{}
	serving  sync.WaitGroup // for the clients
	closed   bool
	sessions map[string]*session
	accounts accounts
	idle     int // number of sessions without subscribers
	bytes    int // of all entries

	operators map[*client]struct{} // the clients that see all sessions
	observed  observed
	holding   map[*session]struct{} // the sessions with records that wait for their causes
	held      int                   // bytes of those records
}

func newHub(config *Config, signer signer, names [feedCount]string) *hub {
	h := &hub{
		config: config, signer: signer, feeds: map[string]feed{}, clients: map[*client]struct{}{}, sessions: map[string]*session{},
		accounts: newAccounts(), operators: map[*client]struct{}{}, observed: newObserved(), holding: map[*session]struct{}{},
	}
	for f, name := range names {
		h.feeds[name] = feed(f)
	}
	return h
}

// admit adds a client. It returns false if the hub is closed or has too many clients. The caller calls leave for every
// admitted client.
func (h *hub) admit(c *client) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.clients) >= h.config.Concurrency {
		return false
	}
	h.clients[c] = struct{}{}
	h.serving.Add(1)
	return true
}

func (h *hub) leave(c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unsubscribe(c)
	delete(h.clients, c)
	h.unobserve(c)
	h.serving.Done()
}

// close disconnects all clients, admits no more, and returns when they have left.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	for c := range h.clients {
		c.End(ws.StatusGoingAway, socket.ReasonStopping)
	}
	h.mu.Unlock()
	h.serving.Wait()
}

// subscribe replaces a client's subscription. The client receives the frames of the session from now on.
func (h *hub) subscribe(c *client, session string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.join(c, session)
}

// subscribeHeld is subscribe for a client that resumes: the client's new frames are held until release. It returns the
// frames after last if they are in memory.
func (h *hub) subscribeHeld(c *client, session, last string) (missed []*frame, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.join(c, session)
	c.holding = true
	return s.since(last)
}

func (h *hub) join(c *client, id string) *session {
	c.receiveNew()
	defer h.unobserve(c) // after the session was taken from those that only operators see
	if c.session != nil && c.session.id == id {
		return c.session
	}
	h.unsubscribe(c)
	s := h.sessions[id]
	switch {
	case s == nil:
		if s = h.observed.remove(id); s == nil {
			s = newSession(id, h.config.Clock.Now())
		}
		s.owner = h.accounts.open(c.owner)
		h.sessions[id] = s
	case s.idle != nil:
		h.wake(s)
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
	s.idle = s.owner.idle.PushBack(s)
	h.idle++
	h.accounts.byIdle.changed(s.owner)
	if h.idle <= h.config.Replay.Sessions {
		return
	}
	oldest := h.accounts.byIdle.owners[0].idle.Front().Value.(*session)
	h.flush(oldest, h.config.Clock.Now(), socket.Limits{})
	for len(oldest.recent) > 0 {
		h.forget(oldest)
	}
	h.wake(oldest)
	h.accounts.close(oldest.owner)
	delete(h.sessions, oldest.id)
}

// wake removes a session from those without subscribers.
func (h *hub) wake(s *session) {
	s.owner.idle.Remove(s.idle)
	s.idle = nil
	h.idle--
	h.accounts.byIdle.changed(s.owner)
}

// release queues the held frames of a client, and from then on every new frame. It skips frames that the replay already
// sent. It returns when that is done or stop is closed.
func (h *hub) release(c *client, end replayEnd, stop <-chan struct{}) {
	for {
		h.mu.Lock()
		c.replayed = end
		held := c.held
		c.held, c.heldBytes = nil, 0
		c.holding = len(held) > 0
		h.mu.Unlock()
		if len(held) == 0 {
			return
		}
		for _, frame := range held {
			if !end.includes(frame) && !c.Wait(stop, socket.Frame{Text: frame.text}) {
				return
			}
		}
	}
}

// deliver queues a frame for all clients of a session and returns for how many.
func (h *hub) deliver(session string, f socket.Frame) (clients int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[session]
	if s == nil {
		return 0
	}
	for c := range s.subscribers {
		if c.Show(f) {
			clients++
		}
	}
	return clients
}

// remember stores a frame for clients that resume, within the limits.
func (h *hub) remember(s *session, f *frame) {
	e := &entry{session: s, frame: f}
	e.element = s.owner.remembered.PushBack(e)
	s.recent = append(s.recent, e)
	h.charge(s, len(f.text))
	for len(s.recent) > h.config.Replay.Frames || s.bytes > h.config.Replay.Bytes {
		h.forget(s)
	}
	for h.bytes > h.config.Replay.TotalBytes {
		h.forget(h.accounts.byBytes.owners[0].remembered.Front().Value.(*entry).session)
	}
}

// charge adds bytes to what a session has in memory.
func (h *hub) charge(s *session, bytes int) {
	s.bytes, h.bytes, s.owner.bytes = s.bytes+bytes, h.bytes+bytes, s.owner.bytes+bytes
	h.accounts.byBytes.changed(s.owner)
}

// forget drops a session's oldest frame. The oldest frame of an owner is also the oldest of its session.
func (h *hub) forget(s *session) {
	e := s.recent[0]
	s.recent[0] = nil
	s.recent = s.recent[1:]
	s.forgotten = e.frame.id
	s.owner.remembered.Remove(e.element)
	h.charge(s, -len(e.frame.text))
}
