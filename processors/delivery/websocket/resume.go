package websocket

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/processors"
)

// Why a client that comes back does not get what it missed.
const (
	reasonUnknown  = "last_event_id is none of this session"
	reasonLongAgo  = "the last event is too long ago"
	reasonTooMuch  = "too much was missed"
	reasonAway     = "the topics cannot be read now"
	reasonTooLong  = "reading it back takes too long"
	readBackFor    = 15 * time.Second
	readBacks      = 8           // at a time
	acrossFeeds    = time.Minute // by how much the records of one feed may be behind those of another
	pauseFollowing = 5 * time.Second
)

// follower is processors.Follower.
type follower interface {
	Ready() <-chan struct{}
	Replay(ctx context.Context, topic, key string, since time.Time,
		take func(context.Context, processors.Inbound) (more bool)) (next int64, err error)
}

// resume gives a client that comes back what it missed, and then what comes.
func (s *Server) resume(ctx context.Context, c *client, sub subscription) {
	var f floor
	reason := ""
	missed, ok := s.hub.hold(c, sub.session, sub.last)
	if !ok {
		missed, f, reason = s.readBack(ctx, sub)
	}
	if ctx.Err() != nil {
		return
	}
	for _, frame := range missed {
		if !c.queue.wait(ctx.Done(), item{text: frame.text}) {
			return
		}
	}
	if c.queue.wait(ctx.Done(), item{text: resumed(sub.session, len(missed), reason)}) {
		s.hub.release(c, f, ctx.Done())
	}
}

// readBack reads what a client missed from the topics, and up to where that went.
func (s *Server) readBack(ctx context.Context, sub subscription) (missed []*frame, f floor, reason string) {
	last, ok := parseEventID(sub.last)
	now := s.rules.clock.Now()
	switch {
	case !ok || last.session != digestOf(sub.session):
		return nil, floor{}, reasonUnknown
	case now.Sub(time.UnixMilli(last.at)) > s.rules.replay.Window:
		return nil, floor{}, reasonLongAgo
	}
	ctx, cancel := context.WithTimeout(ctx, readBackFor)
	defer cancel()
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-ctx.Done():
		return nil, floor{}, reasonTooLong
	}
	b := &back{sub: sub, last: last, limits: limits{s.rules.replay.Frames, s.rules.replay.Bytes}, cancel: cancel}
	b.floor.at = now
	var reading sync.WaitGroup
	for feed := range feedCount {
		if feed != feedLatency { // its key is no session
			reading.Go(func() { b.read(ctx, s.follower(feed), feed, s.names[feed]) })
		}
	}
	reading.Wait()
	if b.reason != "" {
		return nil, floor{}, b.reason
	}
	return b.frames(), b.floor, ""
}

// back is one reading back.
type back struct {
	sub    subscription
	last   eventID
	limits limits
	cancel context.CancelFunc

	mu     sync.Mutex
	found  [feedCount][]shown
	count  int
	bytes  int
	floor  floor
	reason string
}

// read finds the records of a feed that the client has not seen.
func (b *back) read(ctx context.Context, from follower, f feed, topic string) {
	if from == nil {
		b.fail(reasonAway)
		return
	}
	if f == feedSessionContext && !isReady(from) {
		return // nobody makes it any more
	}
	wait := time.NewTimer(pauseFollowing)
	defer wait.Stop()
	select {
	case <-from.Ready():
	case <-wait.C:
		b.fail(reasonAway)
		return
	case <-ctx.Done():
		b.fail(reasonTooLong)
		return
	}
	since := time.UnixMilli(max(b.last.born, b.last.at-acrossFeeds.Milliseconds()))
	next, err := from.Replay(ctx, topic, b.sub.session, since, func(_ context.Context, r processors.Inbound) bool {
		return b.seen(f, r) || b.keep(f, show(f, b.sub.session, r))
	})
	switch {
	case err == nil:
		b.mu.Lock()
		b.floor.next[f] = next
		b.mu.Unlock()
	case ctx.Err() != nil:
		b.fail(reasonTooLong)
	default:
		b.fail(reasonAway)
	}
}

// seen reports whether a record came with the last event, or before it.
func (b *back) seen(f feed, r processors.Inbound) bool {
	if m := b.last.marks[f]; m.next > 0 && m.partition == r.Partition {
		return r.Offset < m.next
	}
	return r.Timestamp.UnixMilli() < b.last.born
}

func (b *back) keep(f feed, r shown) (more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count++
	b.bytes += len(r.event) + len(r.chat)
	if b.count > b.limits.frames || b.bytes > b.limits.bytes {
		b.reason = cmp.Or(b.reason, reasonTooMuch)
		b.cancel()
		return false
	}
	b.found[f] = append(b.found[f], r)
	return true
}

// fail gives up. The first reason counts.
func (b *back) fail(reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reason = cmp.Or(b.reason, reason)
	b.cancel()
}

// frames puts what was found in the order of its times; each feed keeps its own.
func (b *back) frames() []*frame {
	place, seen := eventID{session: b.last.session, born: b.last.born}, b.last.marks
	name := func(f *frame) bool {
		id, _ := parseEventID(f.id)
		return id.feed == b.last.feed && id.partition == b.last.partition && id.offset == b.last.offset &&
			id.kind == b.last.kind
	}
	var all []*frame
	var answers session
	for {
		first := -1
		for f, records := range b.found {
			if len(records) > 0 && (first < 0 || records[0].at.Before(b.found[first][0].at)) {
				first = f
			}
		}
		if first < 0 {
			return all
		}
		r := b.found[first][0]
		b.found[first] = b.found[first][1:]
		answered := r.chat != nil && answers.answered(r.output)
		all = append(all, slices.DeleteFunc(r.stamp(b.sub.session, place, &seen, answered), name)...)
	}
}
