package websocket

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/socket"
	"github.com/turntable-streams/turntable/processors/internal/tableindex"
)

// topicRead reads the records that one client missed from all feeds, concurrently.
type topicRead struct {
	sub    subscription
	signer signer
	last   eventID
	limits socket.Limits
	cancel context.CancelFunc

	mu      sync.Mutex
	records [feedCount][]rendered
	count   int
	bytes   int
	end     replayEnd
	reason  string // of the first failure
}

// read reads the records of a feed that the client has not received.
func (t *topicRead) read(ctx context.Context, from follower, f feed, topic string) {
	if from == nil {
		t.fail(reasonAway)
		return
	}
	if f == feedSessionContext && !tableindex.Closed(from.Ready()) {
		return // the topic may not exist: only FlightDeck creates it
	}
	wait := time.NewTimer(readyTimeout)
	defer wait.Stop()
	select {
	case <-from.Ready():
	case <-wait.C:
		t.fail(reasonAway)
		return
	case <-ctx.Done():
		t.fail(reasonTooLong)
		return
	}
	since := time.UnixMilli(max(t.last.born, t.last.at-feedLag.Milliseconds()))
	next, err := from.Replay(ctx, topic, t.sub.session, since, func(_ context.Context, r processors.Inbound) bool {
		return t.seen(f, r) || t.keep(f, render(f, t.sub.session, r))
	})
	switch {
	case err == nil:
		t.mu.Lock()
		t.end.next[f] = next
		t.mu.Unlock()
	case ctx.Err() != nil:
		t.fail(reasonTooLong)
	default:
		t.fail(reasonAway)
	}
}

// seen reports whether the client received a record with its last event or before it.
func (t *topicRead) seen(f feed, r processors.Inbound) bool {
	if m := t.last.marks[f]; m.next > 0 && m.partition == r.Partition {
		return r.Offset < m.next
	}
	return r.Timestamp.UnixMilli() < t.last.born
}

// keep stores a record. It returns false, which ends the read, if a limit is exceeded.
func (t *topicRead) keep(f feed, r rendered) (more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count++
	t.bytes += len(r.event) + len(r.chat)
	if t.count > t.limits.Frames || t.bytes > t.limits.Bytes {
		t.reason = cmp.Or(t.reason, reasonTooMuch)
		t.cancel()
		return false
	}
	t.records[f] = append(t.records[f], r)
	return true
}

// fail ends the read. If it fails several times, the first reason counts.
func (t *topicRead) fail(reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reason = cmp.Or(t.reason, reason)
	t.cancel()
}

// frames returns the frames of all records. It merges the feeds by timestamp, with causes first, and keeps the order within each feed.
func (t *topicRead) frames() []*frame {
	template, seen := eventID{session: t.last.session, born: t.last.born}, t.last.marks
	isLast := func(f *frame) bool {
		unsigned, _ := t.signer.verify(t.sub.session, f.id)
		id, _ := parseEventID(unsigned)
		return id.feed == t.last.feed && id.partition == t.last.partition && id.offset == t.last.offset &&
			id.kind == t.last.kind
	}
	var order waiting
	for _, records := range t.records {
		for _, r := range records {
			order.add(r, r.at)
		}
	}
	var all []*frame
	var sent session
	for r, ok := order.nextByTime(); ok; r, ok = order.nextByTime() {
		answered := r.chat != nil && sent.answered(r.output)
		all = append(all, slices.DeleteFunc(r.frames(t.sub.session, t.signer, template, &seen, answered), isLast)...)
	}
	return all
}
