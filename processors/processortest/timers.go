package processortest

import (
	"fmt"
	"math"
	"time"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/internal/store"
)

const (
	// tick is the delay after which a deadline that was not moved fires again: the runtime's default.
	tick = 250 * time.Millisecond
	// maxRepeats is how often the same deadline may fire in succession.
	maxRepeats = 1000
)

// firing is the last time that the deadline of a row fired.
type firing struct {
	at       time.Time
	deadline int64 // Unix milliseconds
	version  int   // of the row
	repeats  int   // of the same deadline
}

// due is the next deadline to fire.
type due struct {
	runner   *runner
	key      string
	deadline int64
	at       time.Time // when it fires
}

// Advance moves the clock forward and fires the deadlines that become due. It blocks until every graph is idle. When a
// deadline fires, the clock is at its time (or at the current time if it was overdue). Deadlines with the same time fire in
// the order of the arguments of New, then of the keys. If the callback of a deadline writes the row with the same deadline,
// the deadline fires again after a tick (250 ms), at most 1000 times. Advance(0) fires the deadlines that are due now. Pipe
// never fires a deadline. A negative duration fails the test.
func (d *Driver) Advance(by time.Duration) {
	d.tb.Helper()
	if by < 0 {
		d.fail(fmt.Errorf("processortest: the clock cannot go back by %v", by))
		return
	}
	end := d.Now().Add(by)
	for {
		next, ok, err := d.nextDue(end)
		if err == nil && ok {
			err = d.fire(next)
		}
		if err != nil {
			d.fail(err)
			return
		}
		if !ok {
			break
		}
	}
	d.setNow(end)
}

// NextDeadline returns when the next deadline of a row fires, and false if no row has one. It is Now if one is overdue. A test
// that plays what is outside of the graphs advances from one deadline to the next, so that it can react to each.
func (d *Driver) NextDeadline() (at time.Time, ok bool) {
	d.tb.Helper()
	next, ok, err := d.nextDue(time.UnixMilli(math.MaxInt64))
	if err != nil {
		d.fail(err)
	}
	return next.at, ok
}

// nextDue returns the deadline that fires next and not after end. It reads every row, because tables in tests are small.
func (d *Driver) nextDue(end time.Time) (first due, ok bool, err error) {
	now := d.Now()
	for _, r := range d.runners {
		if r.timed == nil {
			continue
		}
		err := r.rows.each(func(key string, row []byte) {
			deadline, has := r.timed.Deadline(row)
			if !has || runtimeapi.IsPart(key) {
				return
			}
			at, open := r.firesAt(key, deadline)
			if !open || at.After(end) {
				return
			}
			if at = at.In(now.Location()); at.Before(now) {
				at = now
			}
			if !ok || at.Before(first.at) {
				first, ok = due{runner: r, key: key, deadline: deadline, at: at}, true
			}
		})
		if err != nil {
			return due{}, false, fmt.Errorf("processortest: table of group %s: %w", r.graph.Group(), err)
		}
	}
	return first, ok, nil
}

// firesAt returns when the deadline of a row fires; open is false if it has already fired.
func (r *runner) firesAt(key string, deadline int64) (at time.Time, open bool) {
	at = time.UnixMilli(deadline)
	last, fired := r.fired[key]
	switch {
	case !fired:
		return at, true
	case last.version == r.rows.version(key):
		return at, false
	case at.After(last.at):
		return at, true
	default:
		return last.at.Add(tick), true
	}
}

func (d *Driver) fire(t due) error {
	r := t.runner
	last, firedBefore := r.fired[t.key]
	this := firing{at: t.at, deadline: t.deadline, version: r.rows.version(t.key)}
	if firedBefore && last.deadline == t.deadline {
		this.repeats = last.repeats + 1
	}
	if this.repeats > maxRepeats {
		return fmt.Errorf("processortest: a deadline of group %s fired %d times and was never moved",
			r.graph.Group(), this.repeats)
	}
	r.fired[t.key] = this
	d.setNow(t.at)
	value, err := store.DueCodec{}.Encode(store.Due{At: time.UnixMilli(t.deadline)})
	if err != nil {
		return err
	}
	return d.pipe(&record{topic: store.TimerTopic(string(r.graph.Group())), key: t.key, value: value, at: t.at})
}

func (d *Driver) setNow(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = now
}
