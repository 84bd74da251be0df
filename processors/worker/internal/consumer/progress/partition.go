package progress

import (
	"maps"
	"slices"
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
	urgency   Urgency
}

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
	until    time.Time
	runner   Runner // of a record that runs elsewhere
	// told is the Until that this process's last handover committed. It recognizes this process's own entry in a commit:
	// a partition cannot change its owner twice within a millisecond.
	told time.Time
}

const unknown = -1

// margin is how much later than the end of the handover the next owner may start a record. It covers the end of the
// cancelled call and small differences of clocks.
const margin = time.Second

// New returns a partition that is not claimed. A commit reserves readAhead offsets beyond the last record that was read. A
// call may continue for handover after its partition was revoked.
func New(readAhead int64, handover time.Duration) *Partition {
	return &Partition{
		ahead: readAhead, handover: handover, next: unknown, committed: unknown, known: map[int64]*record{},
	}
}

// Commit is the group's commit of a partition when a claim begins.
type Commit struct {
	// Offset is the committed offset, negative if there is none.
	Offset int64
	// Metadata is the metadata of the commit.
	Metadata string
	// End is the partition's high watermark. It is used only if another program wrote the commit: records below it may have
	// been handled.
	End int64
}

// Claim begins a claim, which reads records from c.Offset on. It returns the offsets of running calls whose record was
// settled by another process, or whose partition was reset; the caller ends them.
func (p *Partition) Claim(c Commit, now time.Time) (lost []int64) {
	saved, ours := Decode(c.Offset, c.Metadata)
	if c.Offset < p.committed { // an operator moved the group back, or the topic was recreated
		p.settled, p.window, p.next = nil, nil, unknown
		lost = p.forget()
	}
	done := p.doneSpans()
	if c.Offset >= 0 && p.next > c.Offset {
		done = done.add(Span{c.Offset, p.next - 1})
	}
	for _, s := range saved.Done {
		done = done.add(s)
	}
	p.claimed, p.window, p.settled = true, nil, done.from(max(c.Offset, 0))
	p.next, p.read, p.committed = max(c.Offset, unknown), max(c.Offset, 0), max(c.Offset, unknown)
	p.reserved, p.inherited = saved.Reserved, saved.Reserved
	if !ours && c.Offset >= 0 {
		p.inherited = c.End
	}
	p.skipSettled()
	for offset, r := range p.known {
		r.read = false
		if r.state == running {
			r.until = time.Time{} // the partition is back: the handover is over
		}
		if offset < p.next || p.settled.has(offset) {
			if r.state == running {
				lost = append(lost, offset)
			}
			delete(p.known, offset)
		}
	}
	for _, o := range saved.Open {
		p.inherit(o, now)
	}
	p.urgency = Now // reserve before the first record is started
	slices.Sort(lost)
	return lost
}

// forget drops what is known of all records and returns those that run.
func (p *Partition) forget() (lost []int64) {
	for offset, r := range p.known {
		if r.state == running {
			lost = append(lost, offset)
		}
	}
	clear(p.known)
	return lost
}

// inherit adds what the commit says about a record that is not settled.
func (p *Partition) inherit(o Open, now time.Time) {
	if o.Offset < p.next || p.settled.has(o.Offset) {
		return
	}
	r := p.at(o.Offset)
	r.repeated = true
	if r.state == running {
		return
	}
	own := !r.told.IsZero() && o.Until.Equal(r.told)
	if !own {
		r.attempts = max(r.attempts, o.Attempts)
	}
	if r.state != delayed {
		r.state = waiting
	}
	if !own && o.Until.After(now) {
		r.state, r.until, r.runner = elsewhere, o.Until, o.Runner
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

// MayStart reports whether a commit that reserves the record was acknowledged. If not, it asks for one.
func (p *Partition) MayStart(offset int64) bool {
	if offset < p.reserved {
		return true
	}
	p.urgency = Now
	return false
}

// Start records that the record's handler is called. It returns the number of calls before and whether the record may have
// been handled before.
func (p *Partition) Start(offset int64) (attempts int, repeated bool) {
	r := p.at(offset)
	attempts, repeated = r.attempts, r.repeated || offset < p.inherited
	r.state, r.repeated, r.until, r.told = running, true, time.Time{}, time.Time{}
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

// Deferred reports whether a record waits for a call that may run elsewhere.
func (p *Partition) Deferred() bool {
	return slices.ContainsFunc(p.window, func(r *record) bool { return r.state == elsewhere })
}

// Depart ends the deferral of records whose runner is no longer a member of the group: a member stays until its calls have
// ended, unless it crashes. Due returns them next.
func (p *Partition) Depart(member func(Runner) bool, now time.Time) {
	for _, r := range p.known {
		if r.state == elsewhere && !member(r.runner) {
			r.until = now
		}
	}
}

// End ends the claim of a member. Running calls may continue until the handover has passed.
func (p *Partition) End(as Runner, now time.Time) {
	p.claimed, p.runner = false, as
	for offset, r := range p.known {
		switch {
		case r.state == running:
			r.until = now.Add(p.handover)
			r.told = time.UnixMilli(r.until.Add(margin).UnixMilli()) // as precise as the metadata
		case !r.repeated:
			delete(p.known, offset) // not started
		}
	}
}

// Expire returns the running records of a partition that is not claimed whose handover has passed, and all of them if the
// handover was not committed and the partition is claimed by another member. They are no longer this process's.
func (p *Partition) Expire(now time.Time, all bool) (lost []int64) {
	if p.claimed {
		return nil
	}
	for offset, r := range p.known {
		if r.state == running && (all || !r.until.After(now)) {
			lost = append(lost, offset)
			delete(p.known, offset)
		}
	}
	slices.Sort(lost)
	return lost
}

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
			c.Open = append(c.Open, Open{Offset: offset, Attempts: r.attempts + 1})
		case r.state == running:
			c.Open = append(c.Open, Open{offset, r.attempts + 1, r.told, p.runner})
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

// Acknowledge records that the broker has stored a commit.
func (p *Partition) Acknowledge(c Checkpoint) { p.committed, p.reserved = c.Next, c.Reserved }

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
