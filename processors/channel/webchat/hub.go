package webchat

import (
	"maps"
	"slices"
	"sync"
)

// hub has the sockets of each user.
type hub struct {
	mu     sync.Mutex
	users  map[string]map[*client]struct{}
	closed bool
	ended  sync.WaitGroup // a count for each socket
}

// join adds a socket. It returns false after close.
func (h *hub) join(c *client) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	if h.users[c.user] == nil {
		h.users[c.user] = map[*client]struct{}{}
	}
	h.users[c.user][c] = struct{}{}
	h.ended.Add(1)
	return true
}

func (h *hub) leave(c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.users[c.user], c)
	if len(h.users[c.user]) == 0 {
		delete(h.users, c.user)
	}
	h.ended.Done()
}

// of returns the sockets of a user.
func (h *hub) of(name string) []*client {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.users[name]))
}

// close ends all sockets and waits for them.
func (h *hub) close(end func(*client)) {
	h.mu.Lock()
	h.closed = true
	for _, u := range h.users {
		for c := range u {
			end(c)
		}
	}
	h.mu.Unlock()
	h.ended.Wait()
}
