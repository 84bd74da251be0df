package consumer

import (
	"context"
	"slices"
	"time"

	"github.com/turntable-streams/turntable/processors/worker/internal/consumer/progress"
)

// judgeCommit fails if a commit passes a record without an answer. The caller holds the lock.
func (s *simulation) judgeCommit(where at, c progress.Checkpoint) {
	judge := func(from, to int64) {
		for offset := from; offset <= to; offset++ {
			if !s.answered(where, offset) {
				s.failLocked("%v: the commit %+v passes record %d, which has no answer", where, c, offset)
				return
			}
		}
	}
	judge(0, c.Next-1)
	for _, done := range c.Done {
		judge(done.First, done.Last)
	}
}

func (s *simulation) answered(where at, offset int64) bool {
	for _, c := range s.calls[where][offset] {
		if c.answered {
			return true
		}
	}
	return false
}

// fault reports whether a process had a fault at the given time or later, or so shortly before that a rebalance that it has missed
// may have ended since.
func (p *simProcess) fault(since time.Time) bool {
	return p.faulty || p.healthy.Add(simRebalance).After(since)
}

func (s *simulation) anyFault(since time.Time) bool {
	return slices.ContainsFunc(s.processes, func(p *simProcess) bool { return p.fault(since) })
}

// begin judges a call before it is made. The caller holds the lock.
func (p *simProcess) begin(ctx context.Context, where at, offset int64, delivered time.Time, within int32, repeated bool) *simCall {
	c := &simCall{by: p, ctx: ctx, began: delivered, running: true, within: within}
	small := p.broker.limit < progress.MaxMetadata // then commits leave handovers out
	for _, earlier := range p.calls[where][offset] {
		if !repeated && !small {
			p.failLocked("%s calls for %v/%d, which was called before, and does not know", p.name, where, offset)
		}
		// A member without a partition has no commit in which to note that a call that it has handed over is settled.
		// The next owner may have lost its connection before it could read the note.
		excused := earlier.released || earlier.handed && p.anyFault(earlier.began) || earlier.answered && (earlier.by.idle || earlier.by.owns.After(earlier.began)) || earlier.by.fault(earlier.began) || p.fault(delivered) || small ||
			earlier.running && time.Since(earlier.began) > simHandover
		switch {
		case earlier.running && earlier.by == p && earlier.ctx.Err() == nil:
			p.failLocked("%s calls for %v/%d while it calls for it", p.name, where, offset)
		case !excused:
			p.failLocked("%s calls again for %v/%d: %+v", p.name, where, offset, *earlier)
		}
	}
	if p.calls[where] == nil {
		p.calls[where] = map[int64][]*simCall{}
	}
	p.calls[where][offset] = append(p.calls[where][offset], c)
	p.note("%s calls for %v/%d (repeated %t)", p.name, where.id, offset, repeated)
	return c
}

// judgeDoubles fails if two processes call for a record although neither had a fault for so long that both know the group.
func (s *simulation) judgeDoubles() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broker.limit < progress.MaxMetadata {
		return
	}
	settled := func(p *simProcess) bool {
		return !p.faulty && time.Since(p.healthy) > simSession+2*simRebalance && p.ctx.Err() == nil
	}
	for where, records := range s.calls {
		for offset, calls := range records {
			n := 0
			for _, c := range calls {
				if c.running && settled(c.by) {
					n++
				}
			}
			if n > 1 {
				s.failLocked("%d processes call for %v/%d", n, where, offset)
			}
		}
	}
}
