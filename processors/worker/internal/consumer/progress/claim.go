package progress

import (
	"slices"
	"time"
)

// margin is how much later than the end of the handover the next owner may start a record. It covers the end of the
// cancelled call and small differences of clocks.
const margin = time.Second

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
// settled by another process, or runs in one that has handed it over, or whose partition was reset; the caller ends them.
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
	p.doubt = doubt{} // the coordinator refuses commits of earlier generations
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
		if p.inherit(o, now) {
			lost = append(lost, o.Offset)
		}
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

// inherit adds what the commit says about a record that is not settled. It reports whether a running call of this process is
// lost, because another member has begun one since and goes on with it.
func (p *Partition) inherit(o Open, now time.Time) (lost bool) {
	if o.Offset < p.next || p.settled.has(o.Offset) {
		return false
	}
	r := p.at(o.Offset)
	r.repeated = true
	own := !r.told.IsZero() && o.Until.Equal(r.told) && o.Runner == p.runner
	if lost = r.state == running; lost && (own || !o.Until.After(now)) {
		return false
	}
	if !own {
		r.attempts = max(r.attempts, o.Attempts)
	}
	if r.state != delayed {
		r.state = waiting
	}
	if !own && o.Until.After(now) {
		r.state, r.until, r.runner = elsewhere, o.Until, o.Runner
	}
	return lost
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

// Idle returns the running records that wait for their calls, and starts them again: the next delivery knows that another
// member may have called meanwhile.
func (p *Partition) Idle() (lost []int64) {
	for offset, r := range p.known {
		if r.state == running && r.idle {
			r.state, r.repeated = waiting, true
			lost = append(lost, offset)
		}
	}
	return lost
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

// Hands reports whether a commit has the handover of every running record, so that the owner of the partition waits for their
// calls.
func (p *Partition) Hands(c Commit) bool {
	saved, _ := Decode(c.Offset, c.Metadata)
	for offset, r := range p.known {
		if r.state == running && !slices.ContainsFunc(saved.Open, func(o Open) bool {
			return o.Offset == offset && o.Until.Equal(r.told) && o.Runner == p.runner
		}) {
			return false
		}
	}
	return true
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
