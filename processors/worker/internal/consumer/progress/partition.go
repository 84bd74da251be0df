package progress

import (
	"time"
)

// Partition is the state of one partition in one process. It outlives claims: a call that runs when the partition is
// revoked stays in it, so that its result counts if the partition returns. It is not safe for concurrent use.
type Partition struct {
	ahead    int64         // how far beyond the last read record a commit reserves
	handover time.Duration // how long a call runs on after its partition was revoked

	claimed   bool
	runner    Runner            // this member when the last claim ended
	next      int64             // the offset to commit; unknown (-1) before the first record of a group without a commit
	read      int64             // the offset after the last record that this claim has read
	window    []*record         // the records that this claim has read, beginning with the first that is not settled
	known     map[int64]*record // records that are not settled: those of the window, and those with a history
	settled   spans             // settled offsets that this claim has not read
	inherited int64             // below it, earlier owners may have started records
	reserved  int64             // the reservation of the last acknowledged commit
	committed int64             // the offset of the last acknowledged commit, or of the claim's start
	doubt     doubt
	urgency   Urgency
}

type state int

const (
	waiting   state = iota // may be started
	delayed                // released by the handler; may be started at until
	running                // its handler runs in this process; if the partition is not claimed, at most until until
	elsewhere              // its handler may run in another process until until
	settled
)

type record struct {
	offset   int64
	state    state
	read     bool // in the window
	attempts int  // finished calls of the handler, or begun ones of other processes
	repeated bool // a handler was called for it
	idle     bool // it runs, but its handler has yet to be called or waits: no attempt has begun
	until    time.Time
	runner   Runner // of a record that runs elsewhere
	// told is the Until that this process's last handover committed. With the runner it recognizes this process's own entry in
	// a commit: a partition cannot change its owner twice within a millisecond.
	told time.Time
}

// doubt says that commits of this claim have an unknown outcome: until a time, one of them may still arrive and replace newer
// ones.
type doubt struct {
	until    time.Time // zero: there is none
	reserved int64     // the smallest of their reservations
}

const unknown = -1

// New returns a partition that is not claimed. A commit reserves readAhead offsets beyond the last record that was read. A
// call may continue for handover after its partition was revoked.
func New(readAhead int64, handover time.Duration) *Partition {
	return &Partition{
		ahead: readAhead, handover: handover, next: unknown, committed: unknown, known: map[int64]*record{},
	}
}

// at returns what is known of a record, which is entered if it is new.
func (p *Partition) at(offset int64) *record {
	r, ok := p.known[offset]
	if !ok {
		r = &record{offset: offset}
		p.known[offset] = r
	}
	return r
}

// advance removes the settled records at the beginning of the window.
func (p *Partition) advance() (left int) {
	for left < len(p.window) && p.window[left].state == settled {
		p.next = p.window[left].offset + 1
		p.window[left] = nil
		left++
	}
	p.window = p.window[left:]
	if len(p.window) == 0 {
		p.skipSettled()
	}
	return left
}

// skipSettled moves next over settled records that this claim has not read and that follow it without a gap.
func (p *Partition) skipSettled() {
	if len(p.window) == 0 && len(p.settled) > 0 && p.settled[0].First <= p.next {
		p.next = max(p.next, p.settled[0].Last+1)
		p.settled = p.settled[1:]
	}
}
