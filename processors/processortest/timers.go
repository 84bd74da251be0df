package processortest

import (
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/internal/timer"
)

const (
	// tick is how long after a deadline has fired one that is not later can fire again: the runtime's default.
	tick = 250 * time.Millisecond
	// maxRepeats bounds how often one deadline fires in a row.
	maxRepeats = 1000
)

// firing is what is remembered of a row whose deadline has fired.
type firing struct {
	at       time.Time
	deadline int64
	version  int // of the row
	repeats  int // of the same deadline
}

// due is a deadline that comes up.
type due struct {
	runner   *runner
	key      string
	deadline int64
	at       time.Time // when it fires
}

// Advance moves the clock and returns when everything that came due meanwhile has been done. The clock stops at each
// deadline on the way, so a callback sees the time at which it is due (one that was overdue before: the present);
// equal times go in the order of New, then of keys. A deadline that is not moved by its own callback, but written
// again, fires again a tick (250 ms) later, a bounded number of times. Advance(0) fires what is due now. Pipe never
// fires a deadline.
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

// nextDue finds the deadline that fires next, not later than end. It looks at every row, for tables here are small.
func (d *Driver) nextDue(end time.Time) (first due, ok bool, err error) {
	now := d.Now()
	for _, r := range d.runners {
		if r.timed == nil {
			continue
		}
		err := r.rows.each(func(key string, row []byte) {
			deadline, has := r.timed.Deadline(row)
			if !has {
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

// firesAt is when the deadline of a row fires; open is false where it has.
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
	last, again := r.fired[t.key]
	mark := firing{at: t.at, deadline: t.deadline, version: r.rows.version(t.key)}
	if again && last.deadline == t.deadline {
		mark.repeats = last.repeats + 1
	}
	if mark.repeats > maxRepeats {
		return fmt.Errorf("processortest: a deadline of group %s fired %d times and was never moved",
			r.graph.Group(), mark.repeats)
	}
	r.fired[t.key] = mark
	d.setNow(t.at)
	value, err := timer.Codec{}.Encode(timer.Due{At: time.UnixMilli(t.deadline)})
	if err != nil {
		return err
	}
	return d.pipe(&record{topic: timer.Topic(string(r.graph.Group())), key: t.key, value: value, at: t.at})
}

func (d *Driver) setNow(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = now
}
