package platform

import (
	"context"
	"errors"
	"sync"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
)

// ErrBusy is returned by Submit when too many events are in progress: the platform sends the event again.
var ErrBusy = errors.New("channel: too many events in progress")

// Submit passes an event to the receiver after the earlier ones of its conversation, which is its channel, account, recipient and
// thread. It returns the receiver's error, ErrBusy, or the error of ctx, also if that ends while the event waits.
func (d *Door) Submit(ctx context.Context, to adapter.Receiver, in adapter.Inbound) error {
	key := in.Origin.Session("")
	if !d.events.take(key) {
		return ErrBusy
	}
	defer d.events.free(key)
	if err := d.turns.enter(ctx, key); err != nil {
		return err
	}
	defer d.turns.leave(key)
	return to.Receive(ctx, in)
}

// turns lets one event of a conversation through at a time, in the order of arrival.
type turns struct {
	mu      sync.Mutex
	waiting map[string]*turn
}

// turn is a conversation with an event in progress, and the events that wait for it.
type turn struct{ queue []chan struct{} }

func (t *turns) enter(ctx context.Context, key string) error {
	t.mu.Lock()
	of := t.waiting[key]
	if of == nil {
		t.waiting[key] = &turn{}
		t.mu.Unlock()
		return nil
	}
	mine := make(chan struct{})
	of.queue = append(of.queue, mine)
	t.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, c := range of.queue {
		if c == mine {
			of.queue = append(of.queue[:i], of.queue[i+1:]...)
			return ctx.Err()
		}
	}
	return nil // the turn came at the same time
}

// leave lets the next event through.
func (t *turns) leave(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.waiting[key]
	if len(of.queue) == 0 {
		delete(t.waiting, key)
		return
	}
	close(of.queue[0])
	of.queue = of.queue[1:]
}
