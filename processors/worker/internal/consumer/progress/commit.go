package progress

import (
	"maps"
	"slices"
	"time"
)

// Urgency is how soon a commit is needed.
type Urgency int

// The urgencies.
const (
	// None: the last commit is up to date.
	None Urgency = iota
	// Later: a crash would forget attempts, but repeat nothing that is settled.
	Later
	// Now: a crash would repeat a settled record, or a record waits for a reservation.
	Now
)

// Urgency returns how soon a commit is needed.
func (p *Partition) Urgency() Urgency {
	if p.next == unknown {
		return None
	}
	if p.claimed && p.urgency < Later && p.read+p.ahead/2 > p.reserved {
		return Later
	}
	return p.urgency
}

func (p *Partition) raise(u Urgency) { p.urgency = max(p.urgency, u) }

// Retry asks for another commit, after one that failed.
func (p *Partition) Retry(u Urgency) { p.raise(u) }

// Doubt records that the outcome of a commit is unknown: it may still arrive before the given time and replace newer commits.
// Until then, no record is started that it does not reserve.
func (p *Partition) Doubt(c Checkpoint, until time.Time) {
	if p.doubt.until.IsZero() || c.Reserved < p.doubt.reserved {
		p.doubt.reserved = c.Reserved
	}
	p.doubt.until = until
}

// Doubts reports whether a commit of unknown outcome may still arrive. The caller repeats the last commit meanwhile. over is
// true when that has just ended: MayStart may now report true.
func (p *Partition) Doubts(now time.Time) (doubts, over bool) {
	if p.doubt.until.After(now) {
		return true, false
	}
	over = !p.doubt.until.IsZero()
	p.doubt = doubt{}
	return false, over
}

// Checkpoint returns what to commit, and resets the urgency. There is nothing to commit if it reports false.
func (p *Partition) Checkpoint() (Checkpoint, bool) {
	p.urgency = None
	if p.next == unknown {
		return Checkpoint{}, false
	}
	c := Checkpoint{Next: p.next, Done: p.doneSpans(), read: max(p.read, p.inherited)}
	for _, offset := range slices.Sorted(maps.Keys(p.known)) {
		r := p.known[offset]
		switch {
		case offset < p.next || p.claimed && !r.read && offset < p.read:
			// The record no longer exists: the claim has read past it.
		case r.state == running && p.claimed:
			c.Open = append(c.Open, Open{Offset: offset, Attempts: r.begun()})
		case r.state == running:
			c.Open = append(c.Open, Open{offset, r.begun(), r.told, p.runner})
		case r.state == elsewhere:
			c.Open = append(c.Open, Open{offset, r.attempts, r.until, r.runner})
		case r.repeated:
			c.Open = append(c.Open, Open{Offset: offset, Attempts: r.attempts})
		}
	}
	if n := len(c.Open); n > 0 {
		c.read = max(c.read, c.Open[n-1].Offset+1)
	}
	if n := len(c.Done); n > 0 {
		c.read = max(c.read, c.Done[n-1].Last+1)
	}
	switch {
	case p.claimed:
		c.Reserved = max(p.inherited, p.read+p.ahead)
	case p.inherited > p.next:
		c.Reserved = p.inherited
	}
	return c, true
}

// begun returns the number of attempts of a running record, the present one included.
func (r *record) begun() int {
	if r.idle {
		return r.attempts
	}
	return r.attempts + 1
}

// Acknowledge records that the broker has stored a commit.
func (p *Partition) Acknowledge(c Checkpoint) { p.committed, p.reserved = c.Next, c.Reserved }

// doneSpans returns the settled offsets beyond next. Neighbors in the window become one range even if there is a gap between
// their offsets: there is no record in it.
func (p *Partition) doneSpans() spans {
	var done spans
	joined := false
	for _, r := range p.window {
		switch {
		case r.state != settled:
			joined = false
		case joined:
			done[len(done)-1].Last = r.offset
		default:
			done = append(done, Span{r.offset, r.offset})
			joined = true
		}
	}
	return append(done, p.settled...)
}

// Lag returns how many offsets below end are not settled.
func (p *Partition) Lag(end int64) int64 {
	lag := end - max(p.next, 0)
	for _, s := range p.doneSpans() {
		lag -= s.Last - s.First + 1
	}
	return max(lag, 0)
}
