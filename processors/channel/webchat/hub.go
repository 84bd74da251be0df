package webchat

import "sync"

// hub has the sockets of each user.
type hub struct {
	mu     sync.Mutex
	users  map[string]*user
	closed bool
	ended  sync.WaitGroup // a count for each socket
}

// user is someone with sockets.
type user struct {
	sockets map[*client]struct{}
	// turn is taken by the socket whose event is being received, so that the events of a user keep their order.
	turn chan struct{}
}

// join adds a socket. It returns false after close.
func (h *hub) join(c *client) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	u := h.users[c.user]
	if u == nil {
		u = &user{sockets: map[*client]struct{}{}, turn: make(chan struct{}, 1)}
		h.users[c.user] = u
	}
	u.sockets[c] = struct{}{}
	c.turn = u.turn
	h.ended.Add(1)
	return true
}

func (h *hub) leave(c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	u := h.users[c.user]
	delete(u.sockets, c)
	if len(u.sockets) == 0 {
		delete(h.users, c.user)
	}
	h.ended.Done()
}

// of returns the sockets of a user.
func (h *hub) of(name string) (sockets []*client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if u := h.users[name]; u != nil {
		for c := range u.sockets {
			sockets = append(sockets, c)
		}
	}
	return sockets
}

// close ends all sockets and waits for them.
func (h *hub) close(end func(*client)) {
	h.mu.Lock()
	h.closed = true
	for _, u := range h.users {
		for c := range u.sockets {
			end(c)
		}
	}
	h.mu.Unlock()
	h.ended.Wait()
}
