package channel

import (
	"context"
	"sync"

	"github.com/turntable-streams/turntable/topics"
)

// place is a conversation.
type place struct{ channel, account, recipient, thread string }

func placeOf(o topics.Origin) place { return place{o.Channel, o.Account, o.Recipient, o.Thread} }

// conversations lets one message at a time into each conversation. The zero value is ready. It is safe for concurrent use.
type conversations struct {
	mu   sync.Mutex
	open map[place]*turnstile // of the conversations with a message
}

type turnstile struct {
	free  chan struct{} // has an element when no message is in
	users int           // in it or waiting; guarded by conversations.mu
}

// enter waits until no other message is in the conversation. It reports false if ctx ended before. The caller calls leave.
func (c *conversations) enter(ctx context.Context, p place) bool {
	c.mu.Lock()
	t := c.open[p]
	if t == nil {
		t = &turnstile{free: make(chan struct{}, 1)}
		t.free <- struct{}{}
		if c.open == nil {
			c.open = map[place]*turnstile{}
		}
		c.open[p] = t
	}
	t.users++
	c.mu.Unlock()
	select {
	case <-t.free:
		return true
	case <-ctx.Done():
		c.drop(p, t)
		return false
	}
}

// leave lets the next message in.
func (c *conversations) leave(p place) {
	c.mu.Lock()
	t := c.open[p]
	c.mu.Unlock()
	t.free <- struct{}{}
	c.drop(p, t)
}

func (c *conversations) drop(p place, t *turnstile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(c.open, p)
	}
}
