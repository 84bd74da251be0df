package processors

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/internal/instance"
)

// catchUpPause is the shortest time between two requests of CatchUp about one partition.
const catchUpPause = 20 * time.Millisecond

// CatchUp blocks until the handler has returned for every record of a key's partition that was committed when CatchUp was
// called. Use it before you conclude that a record does not exist. It reads no records, and all calls for a partition share
// their requests to the brokers, at most 50 per second. It returns ErrNotFollowing if Run is not connected, ErrNoTopic if
// the brokers do not have the topic, and ctx.Err() when ctx ends.
func (f *Follower) CatchUp(ctx context.Context, topic, key string) error {
	partition, err := f.Partition(topic, key)
	if err != nil {
		return err
	}
	return f.askEnd(place{topic, partition}).wait(ctx)
}

// CatchUpTopic is CatchUp for all partitions of a topic, for a record whose key is not known.
func (f *Follower) CatchUpTopic(ctx context.Context, topic string) error {
	partitions, err := f.Partitions(topic)
	if err != nil {
		return err
	}
	asked := make([]catching, len(partitions))
	for i, partition := range partitions {
		asked[i] = f.askEnd(place{topic, partition})
	}
	for _, a := range asked {
		if err := a.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// catching is a call of CatchUp for one partition.
type catching struct {
	handled *handled
	request *endRequest
}

func (f *Follower) askEnd(p place) catching {
	h := f.progress.of(p)
	return catching{h, h.join(func() (int64, error) { return f.committedEnd(p, h) })}
}

func (c catching) wait(ctx context.Context) error {
	select {
	case <-c.request.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.request.err != nil {
		return c.request.err
	}
	return c.handled.wait(ctx, c.request.end)
}

// committedEnd returns the offset after the last committed record of a partition, or the offset up to which the follower has
// handled it, if that is higher.
func (f *Follower) committedEnd(p place, h *handled) (int64, error) {
	client, ctx, done, err := f.use(context.Background())
	if err != nil {
		return 0, err
	}
	defer done()
	end, err := instance.CommittedEnd(ctx, client, p.topic, p.partition, h.position())
	if err != nil {
		return 0, fmt.Errorf("processors: end of %s/%d: %w", p.topic, p.partition, err)
	}
	return end, nil
}

// progress is how far a follower has handled its partitions.
type progress struct {
	mu     sync.Mutex
	places map[place]*handled
}

func (p *progress) of(at place) *handled {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.places == nil {
		p.places = map[place]*handled{}
	}
	if p.places[at] == nil {
		p.places[at] = &handled{moved: make(chan struct{})}
	}
	return p.places[at]
}

// handled is how far a partition is handled, and the calls of CatchUp that wait for it.
type handled struct {
	mu      sync.Mutex
	next    int64
	moved   chan struct{} // closed when next changes, if a call of CatchUp waits
	waiting bool
	coming  *endRequest // not yet sent, so later callers may join; nil for none
	sent    time.Time   // when the last request was sent
}

// endRequest is a request for the end of a partition. end and err are set when done is closed.
type endRequest struct {
	done chan struct{}
	end  int64
	err  error
}

func (h *handled) position() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.next
}

// advance sets the next offset. After a topic was deleted and created again, it can be lower than before.
func (h *handled) advance(next int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next = next
	if h.waiting {
		close(h.moved)
		h.moved, h.waiting = make(chan struct{}), false
	}
}

// wait blocks until the partition is handled up to end.
func (h *handled) wait(ctx context.Context, end int64) error {
	for {
		h.mu.Lock()
		if h.next >= end {
			h.mu.Unlock()
			return nil
		}
		h.waiting = true
		moved := h.moved
		h.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// join returns a request that is sent after the call of join. The calls that come before it is sent share it.
func (h *handled) join(ask func() (int64, error)) *endRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.coming != nil {
		return h.coming
	}
	r := &endRequest{done: make(chan struct{})}
	h.coming = r
	send := func() {
		h.mu.Lock()
		h.coming, h.sent = nil, time.Now()
		h.mu.Unlock()
		r.end, r.err = ask()
		close(r.done)
	}
	if pause := catchUpPause - time.Since(h.sent); pause > 0 {
		time.AfterFunc(pause, send)
	} else {
		go send()
	}
	return r
}
