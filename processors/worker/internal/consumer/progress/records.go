package progress

import (
	"time"
)

// Action is what to do with a record.
type Action int

// The actions.
const (
	// Skip: the record is settled.
	Skip Action = iota
	// Start: call the handler, after MayStart reports true.
	Start
	// Join: its handler runs in this process already; Settle or Release follows from that call.
	Join
	// Defer: Due returns the record when it may be started.
	Defer
)

// Read adds the next record that the claim has read. Offsets ascend; there may be gaps. It returns how many records left the
// window: a record stays in it until all records before it are settled. A record below the window counts too.
func (p *Partition) Read(offset int64) (left int) {
	p.read = offset + 1
	if p.next == unknown {
		p.next = offset
	}
	done := p.settled.has(offset)
	p.settled = p.settled.from(p.read)
	switch {
	case offset < p.next:
		return 1
	case done:
		p.window = append(p.window, &record{offset: offset, state: settled, read: true})
		return p.advance()
	}
	r := p.at(offset)
	r.read = true
	p.window = append(p.window, r)
	return 0
}

// Decide returns what to do with a record that was read.
func (p *Partition) Decide(offset int64, now time.Time) Action {
	r, ok := p.known[offset]
	switch {
	case !ok:
		return Skip
	case r.state == running:
		return Join
	case (r.state == elsewhere || r.state == delayed) && r.until.After(now):
		return Defer
	}
	return Start
}

// MayStart reports whether a commit that reserves the record was acknowledged, and cannot be replaced by an earlier one that
// does not (Doubt). If none was acknowledged, it asks for one.
func (p *Partition) MayStart(offset int64) bool {
	if offset < p.reserved {
		return p.doubt.until.IsZero() || offset < p.doubt.reserved
	}
	p.urgency = Now
	return false
}

// Start records that the record's handler is called. It returns the number of calls before and whether the record may have
// been handled before.
func (p *Partition) Start(offset int64) (attempts int, repeated bool) {
	r := p.at(offset)
	attempts, repeated = r.attempts, r.repeated || offset < p.inherited
	r.state, r.repeated, r.idle, r.until, r.told = running, true, false, time.Time{}, time.Time{}
	p.raise(Later)
	return attempts, repeated
}

// Fail stores how often the handler of a running record was called and failed.
func (p *Partition) Fail(offset int64, attempts int) {
	if r, ok := p.known[offset]; ok {
		r.attempts = max(r.attempts, attempts)
		p.raise(Later)
	}
}

// Wait records that a running record begins to wait for its call, or that its call begins. A process that ends while the
// record waits has made no attempt.
func (p *Partition) Wait(offset int64, waiting bool) {
	if r, ok := p.known[offset]; ok && r.state == running {
		r.idle = waiting
		p.raise(Later)
	}
}

// Settle records that a running record is settled. It returns how many records left the window.
func (p *Partition) Settle(offset int64) (left int) {
	r, ok := p.known[offset]
	if !ok {
		return 0
	}
	r.state = settled
	delete(p.known, offset)
	p.raise(Now)
	switch {
	case r.read:
		return p.advance()
	case offset >= p.read: // not read yet by this claim
		p.settled = p.settled.add(Span{offset, offset})
		p.skipSettled()
	}
	return 0
}

// Release records that the call of a running record ended without settling it. The record may be started again at until.
func (p *Partition) Release(offset int64, until time.Time) {
	if r, ok := p.known[offset]; ok {
		r.state, r.until = delayed, until
		p.raise(Later)
	}
}

// Due returns the records of the window that were deferred and may be started now, in ascending order.
func (p *Partition) Due(now time.Time) []int64 {
	var due []int64
	for _, r := range p.window {
		if (r.state == elsewhere || r.state == delayed) && !r.until.After(now) {
			r.state = waiting
			due = append(due, r.offset)
		}
	}
	return due
}
