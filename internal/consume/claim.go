package consume

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// claim is one partition in one session of the group.
type claim struct {
	handle func(context.Context, Record) error
	// slots are those of the whole member; space is what is free in this partition's window.
	slots, space chan struct{}
	ordered      bool
	// mark says that all before an offset is done.
	mark func(next int64)
	// fail ends the session.
	fail func(error)

	work    context.Context // of the handlers
	workers sync.WaitGroup

	mu     sync.Mutex
	closed bool // nothing is begun or marked any more
	window window
	busy   map[string][]task // keys that are being handled, and what waits behind them
}

type task struct {
	record Record
	entry  *entry
}

// begin takes a record into the window, for which the caller has got space, and has it handled. It waits for a free
// slot, until ctx ends: the record is not begun then.
func (c *claim) begin(ctx context.Context, r Record) {
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	t := task{r, c.window.add(r.Offset)}
	if c.ordered && r.Key != nil {
		key := string(r.Key)
		if waiting, ok := c.busy[key]; ok {
			c.busy[key] = append(waiting, t)
			c.mu.Unlock()
			return
		}
		c.busy[key] = nil
	}
	c.mu.Unlock()

	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	c.workers.Go(func() {
		defer func() { <-c.slots }()
		for ok := true; ok; {
			if err := c.attempt(t.record); err != nil {
				c.fail(fmt.Errorf("consume: %s/%d offset %d: %w", r.Topic, r.Partition, t.record.Offset, err))
				return
			}
			t, ok = c.finish(t)
		}
	})
}

// attempt calls the handler. What it panics with may quote a payload and is not repeated.
func (c *claim) attempt(r Record) (err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			err = fmt.Errorf("%w: %T", ErrPanic, thrown)
		}
	}()
	return c.handle(c.work, r)
}

// finish marks a record done and returns the one that waited for it, if any.
func (c *claim) finish(t task) (next task, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return task{}, false
	}
	if left, offset := c.window.finish(t.entry); left > 0 {
		c.mark(offset)
		for range left {
			<-c.space
		}
	}
	if !c.ordered || t.record.Key == nil {
		return task{}, false
	}
	key := string(t.record.Key)
	waiting := c.busy[key]
	if len(waiting) == 0 {
		delete(c.busy, key)
		return task{}, false
	}
	c.busy[key] = waiting[1:]
	return waiting[0], true
}

// drain waits until what was begun is done: for limit, then for a moment more after its context has ended. Nothing is
// marked after that.
func (c *claim) drain(limit time.Duration, stop context.CancelFunc) {
	c.mu.Lock()
	clear(c.busy) // what waits is not begun
	c.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.workers.Wait()
	}()
	defer func() {
		stop()
		c.mu.Lock()
		c.closed = true
		c.mu.Unlock()
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return
	case <-timer.C:
	}
	stop()
	timer.Reset(grace)
	select {
	case <-done:
	case <-timer.C:
	}
}
