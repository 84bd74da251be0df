package websocket

import (
	"slices"
	"time"

	"github.com/turntable-streams/turntable/processors/internal/socket"
)

const (
	// causeWait is how long a record waits for its cause.
	causeWait = 500 * time.Millisecond
	// causeTick is how often records that have waited too long are looked for.
	causeTick = 50 * time.Millisecond
	// maxFacts bounds the facts that are remembered per session, maxEnded the turns that have ended.
	maxFacts = 384
	maxEnded = 8
)

// waitingLimits bounds the records of one session that wait for their causes.
var waitingLimits = socket.Limits{Frames: 64, Bytes: 1 << 20}

// waiting orders the records of one session by cause. The topics are read independently, so a record can arrive before the
// record that caused it. It then waits for its cause, at most causeWait, and not if more wait than its limits allow. The
// records of one feed keep their order, because an event ID names one position per feed. It is a pure state machine.
type waiting struct {
	queues  [feedCount][]pending
	arrived uint64
	count   int
	bytes   int
	facts   []fact
	ended   []name // turns whose output was sent; their facts are forgotten
}

// pending is a record that waits.
type pending struct {
	record rendered
	number uint64 // in the order of arrival
	until  time.Time
}

// fact is something that holds because the record of a turn was sent.
type fact struct{ turn, name name }

// add adds a record that arrived.
func (w *waiting) add(r rendered, now time.Time) {
	w.arrived++
	w.queues[r.feed] = append(w.queues[r.feed], pending{r, w.arrived, now.Add(causeWait)})
	w.count, w.bytes = w.count+1, w.bytes+r.size()
}

// next returns the record to send next: the first to arrive of those whose causes were sent, or one that has waited too long or
// exceeds the limits. ok is false if all records must wait.
func (w *waiting) next(now time.Time, l socket.Limits) (r rendered, ok bool) {
	ready, oldest := -1, -1
	for f, queue := range w.queues {
		if len(queue) == 0 {
			continue
		}
		if oldest < 0 || queue[0].number < w.queues[oldest][0].number {
			oldest = f
		}
		if (ready < 0 || queue[0].number < w.queues[ready][0].number) && w.ready(feed(f)) {
			ready = f
		}
	}
	switch {
	case ready >= 0:
		return w.take(feed(ready)), true
	case oldest < 0:
		return rendered{}, false
	case !now.Before(w.queues[oldest][0].until) || w.count > l.Frames || w.bytes > l.Bytes:
		return w.take(w.root(feed(oldest))), true
	default:
		return rendered{}, false
	}
}

// nextByTime returns the record to send next if no more records arrive: the one with the earliest timestamp, after its causes among the records.
func (w *waiting) nextByTime() (r rendered, ok bool) {
	first := -1
	for f, queue := range w.queues {
		if len(queue) > 0 && (first < 0 || queue[0].record.at.Before(w.queues[first][0].record.at)) {
			first = f
		}
	}
	if first < 0 {
		return rendered{}, false
	}
	return w.take(w.root(feed(first))), true
}

// ready reports whether the causes of a feed's first record were sent.
func (w *waiting) ready(f feed) bool {
	c := &w.queues[f][0].record.cause
	if w.repeats(c) {
		return true
	}
	for _, n := range c.needs {
		if !w.met(n) {
			return false
		}
	}
	return !c.last || w.ofTurn(c.turn, f) < 0
}

// repeats reports whether a record is of a turn that has ended, or repeats one of its turn that was sent.
func (w *waiting) repeats(c *causality) bool {
	sent := func(given name) bool { return w.met(need{given}) }
	return c.turn != 0 && (slices.Contains(w.ended, c.turn) ||
		len(c.gives) > 0 && !slices.ContainsFunc(c.gives, func(given name) bool { return !sent(given) }))
}

func (w *waiting) met(n need) bool {
	return slices.ContainsFunc(w.facts, func(f fact) bool { return n.has(f.name) })
}

func (n need) has(fact name) bool { return fact == n[0] || fact == n[1] && n[1] != 0 }

// root returns the feed whose first record must be sent before the first record of f can follow its causes: that of the first cause
// that waits itself.
func (w *waiting) root(f feed) feed {
	var visited [feedCount]bool
	for !visited[f] {
		visited[f] = true
		if cause := w.causeOf(f); cause >= 0 {
			f = cause
		}
	}
	return f
}

// causeOf returns the feed with a cause of the first record of f, -1 if none of its causes waits.
func (w *waiting) causeOf(f feed) feed {
	c := &w.queues[f][0].record.cause
	if w.repeats(c) {
		return -1
	}
	for _, n := range c.needs {
		if w.met(n) {
			continue
		}
		cause := w.find(f, func(other *causality) bool {
			later := other.turn == c.turn && other.step > c.step // it may have the same tool_use_id
			return !later && other.given(n)
		})
		if cause >= 0 {
			return cause
		}
	}
	if c.last {
		return w.ofTurn(c.turn, f)
	}
	return -1
}

// ofTurn returns the feed other than except with a record of a turn, -1 if there is none.
func (w *waiting) ofTurn(turn name, except feed) feed {
	return w.find(except, func(c *causality) bool { return c.turn == turn })
}

// find returns the feed other than except with a record that is like that, -1 if there is none.
func (w *waiting) find(except feed, is func(*causality) bool) feed {
	for f, queue := range w.queues {
		if feed(f) != except && slices.ContainsFunc(queue, func(p pending) bool { return is(&p.record.cause) }) {
			return feed(f)
		}
	}
	return -1
}

// take removes the first record of a feed and remembers that it was sent.
func (w *waiting) take(f feed) rendered {
	r := w.queues[f][0].record
	repeated := w.repeats(&r.cause)
	w.queues[f][0] = pending{}
	w.queues[f] = w.queues[f][1:]
	if len(w.queues[f]) == 0 {
		w.queues[f] = nil
	}
	w.count, w.bytes = w.count-1, w.bytes-r.size()
	if repeated { // what it opened may be open for the next step by now
		return r
	}
	w.facts = slices.DeleteFunc(w.facts, func(f fact) bool {
		return slices.Contains(r.cause.drops, f.name) || r.cause.last && f.turn == r.cause.turn
	})
	if r.cause.last {
		w.ended = appendBounded(w.ended, r.cause.turn, maxEnded)
		return r
	}
	for _, names := range [][]name{r.cause.gives, r.cause.opens} {
		for _, given := range names {
			w.facts = appendBounded(w.facts, fact{r.cause.turn, given}, maxFacts)
		}
	}
	return r
}

// appendBounded appends an element that a list does not have, and drops the first one if there are more than limit.
func appendBounded[E comparable](list []E, e E, limit int) []E {
	if slices.Contains(list, e) {
		return list
	}
	if list = append(list, e); len(list) > limit {
		list = slices.Delete(list, 0, 1)
	}
	return list
}
