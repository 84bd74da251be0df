package consumer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/processors/worker/internal/consumer/progress"
	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

// partition is what this process knows of one partition. It lasts as long as the process.
type partition struct {
	at
	member *member

	mu     sync.Mutex
	state  *progress.Partition
	calls  map[int64]*call // running calls of the handler, by offset
	claim  *claim          // nil if the partition is not assigned to this member
	ending bool            // the claim has ended and its last commit is not stored
	final  bool            // the commit in flight is the last of a claim
	untold bool            // the generation of the last claim has ended without its last commit
	runner progress.Runner // this member when the last claim ended
	stored chan struct{}   // closed and replaced when a commit is stored
	behind time.Time       // since when a commit of attempts is due
}

// call is a running call of the handler.
type call struct {
	lose context.CancelCauseFunc
}

func (m *member) partition(where at) *partition {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.partitions[where]
	if !ok {
		p = &partition{
			at: where, member: m, calls: map[int64]*call{}, stored: make(chan struct{}),
			state: progress.New(int64(m.config.ReadAhead), m.config.Handover),
		}
		m.partitions[where] = p
	}
	return p
}

// all returns the partitions that this process has had.
func (m *member) all() []*partition {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*partition, 0, len(m.partitions))
	for _, p := range m.partitions {
		all = append(all, p)
	}
	return all
}

// checkpoint returns what to commit now, if anything.
func (p *partition) checkpoint() (progress.Checkpoint, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.claim == nil && !p.ending || p.state.Urgency() == progress.None {
		return progress.Checkpoint{}, false
	}
	p.behind, p.final = time.Time{}, p.claim == nil
	return p.state.Checkpoint()
}

// acknowledge records that a commit was stored.
func (p *partition) acknowledge(c progress.Checkpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.Acknowledge(c)
	if p.final {
		p.ending = false
	}
	close(p.stored)
	p.stored = make(chan struct{})
}

// retry asks for another commit after one that failed.
func (p *partition) retry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.Retry(progress.Now)
}

// finish records the end of a call. It returns the next task with the same key, if one waits.
func (p *partition) finish(offset int64, k *call, verdict source.Verdict) (*claim, *task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[offset] != k {
		return nil, nil // lost: the record belongs to another member
	}
	delete(p.calls, offset)
	c := p.claim
	if verdict != source.Settled {
		wait := releasePause
		if c != nil && c.tasks[offset] != nil {
			wait = c.tasks[offset].release()
		}
		p.state.Release(offset, p.member.config.Clock.Now().Add(wait))
		return nil, nil
	}
	if until, handed := p.state.Told(offset); handed {
		p.member.note(progress.Note{Place: progress.PlaceOf(p.topic, p.id), Offset: offset, Until: until})
	}
	left := p.state.Settle(offset)
	p.member.wakeCommit()
	if c == nil {
		return nil, nil
	}
	c.free(left)
	return c, c.settled(offset)
}

// tick ends the calls whose handover has passed, and returns the tasks that may be started now. It reports whether attempts
// have waited for a commit long enough.
func (p *partition) tick(now time.Time) (c *claim, due []*task, commit bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose(p.state.Expire(now, false), "its partition moved and the handover has passed")
	c = p.claim
	if c == nil {
		return nil, nil, false
	}
	for _, offset := range p.state.Due(now) {
		if t := c.tasks[offset]; t != nil && t.head {
			due = append(due, t)
		}
	}
	switch {
	case p.state.Urgency() != progress.Later:
		p.behind = time.Time{}
	case p.behind.IsZero():
		p.behind = now
	case now.Sub(p.behind) >= attemptsWithin:
		commit = true
	}
	return c, due, commit
}

// endGeneration gives up the last commit of a claim: in a later generation it would overwrite another owner's. Calls that wait
// then begin only once the next generation has decided what becomes of them.
func (p *partition) endGeneration() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ending {
		p.ending, p.untold = false, true
		p.member.lease.Drop()
	}
}

// joined begins a generation in which this process is the given member. Unless the owner of the partition waits for the calls that
// ran at the end of the last claim, it ends them. The owner does not if it does not know of them, or has seen that the member that
// has handed them over is no longer in the group: this process has joined again as another one. If the partition is back, calls that
// have begun continue, and the claim decides; records that wait for theirs begin again, because another member may have called.
func (p *partition) joined(as progress.Runner, assigned bool, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.untold && p.runner == as:
	case assigned:
		p.lose(p.state.Idle(), "another member may have called for it")
	default:
		p.untold = false
		p.lose(p.state.Expire(now, true), "its partition moved and the new owner does not wait for this call")
	}
}

// loseAll ends all calls.
func (p *partition) loseAll(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for offset := range p.calls {
		p.lose([]int64{offset}, why)
	}
}

// lose ends calls whose records belong to other members. The caller holds the lock.
func (p *partition) lose(offsets []int64, why string) {
	for _, offset := range offsets {
		if k := p.calls[offset]; k != nil {
			delete(p.calls, offset)
			k.lose(fmt.Errorf("%w: %s/%d offset %d: %s", source.ErrLost, p.topic, p.id, offset, why))
		}
	}
}
