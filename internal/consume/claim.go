package consume

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// claim is one partition during one session of the consumer group.
type claim struct {
	handle func(context.Context, *sarama.ConsumerMessage) error
	// slots bounds the running handlers of the whole member; space bounds the records in this partition's window. Both
	// are semaphores: a send acquires, a receive releases.
	slots, space chan struct{}
	ordered      bool
	// mark marks offset next for the next commit: all records before it are handled.
	mark func(next int64)
	// fail ends the session with an error.
	fail func(error)

	work    context.Context // passed to the handlers
	workers sync.WaitGroup

	mu     sync.Mutex
	closed bool // drain is over: no offset is marked any more
	window window
	busy   map[string][]task // the keys that are being handled, each with its waiting records
}

type task struct {
	record *sarama.ConsumerMessage
	entry  *entry
}

// begin adds a record to the window and starts its handler. The caller must have acquired space. begin blocks until a
// slot is free. If ctx ends first, the handler is not started.
func (c *claim) begin(ctx context.Context, r *sarama.ConsumerMessage) {
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
			if err := c.callHandler(t.record); err != nil {
				c.fail(fmt.Errorf("consume: %s/%d offset %d: %w", r.Topic, r.Partition, t.record.Offset, err))
				return
			}
			t, ok = c.finish(t)
		}
	})
}

// callHandler calls the handler and returns a panic as an error. The panic value may contain a payload, so the error has
// only its type.
func (c *claim) callHandler(r *sarama.ConsumerMessage) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("%w: %T", ErrPanic, panicked)
		}
	}()
	return c.handle(c.work, r)
}

// finish records that t is handled and returns the next waiting record with the same key, if any.
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

// drain waits until the running handlers return: first for limit, then, with their context cancelled by stop, for grace.
// No offset is marked after drain returns.
func (c *claim) drain(limit time.Duration, stop context.CancelFunc) {
	c.mu.Lock()
	clear(c.busy) // waiting records are not started
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
