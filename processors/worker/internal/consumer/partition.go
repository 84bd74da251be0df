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

	mu      sync.Mutex
	state   *progress.Partition
	calls   map[int64]*call // running calls of the handler, by offset
	claim   *claim          // nil if the partition is not assigned to this member
	ending  bool            // the claim has ended, and its generation has not
	final   bool            // the commit in flight is the last of a claim
	untold  bool            // the last commit of the last claim is not stored
	doubted bool            // an earlier commit may have arrived late and replaced the last one of the last claim
	runner  progress.Runner // this member when the last claim ended
	stored  chan struct{}   // closed and replaced when a commit is stored, or is no longer in doubt
	behind  time.Time       // since when a commit of attempts is due
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
		p.untold = false
	}
	p.wakeStarts()
}

// wakeStarts lets records that wait for a reservation ask again. The caller holds the lock.
func (p *partition) wakeStarts() {
	close(p.stored)
	p.stored = make(chan struct{})
}

// retry asks for another commit after one that failed. If the outcome is unknown, the failed one may arrive late.
func (p *partition) retry(failed progress.Checkpoint, unknown bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.Retry(progress.Now)
	if unknown {
		p.state.Doubt(failed, p.member.config.Clock.Now().Add(p.member.config.lateness()))
	}
}

// repeat asks for the last commit again while an earlier one may arrive late and replace it.
func (p *partition) repeat() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.repeatLocked(p.member.config.Clock.Now())
}

func (p *partition) repeatLocked(now time.Time) bool {
	doubts, over := p.state.Doubts(now)
	if over {
		p.wakeStarts()
	}
	if p.claim == nil && !p.ending || !doubts && !over { // once more when it is over
		return false
	}
	p.state.Retry(progress.Now)
	return true
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
	commit = p.repeatLocked(now)
	c = p.claim
	if c == nil {
		return nil, nil, commit
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
	if !p.ending {
		return
	}
	p.ending = false
	p.doubted, _ = p.state.Doubts(p.member.config.Clock.Now())
	if p.untold || p.doubted {
		p.member.lease.Drop()
	}
}

// isDoubted reports whether the last commit of the last claim may have been replaced.
func (p *partition) isDoubted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.doubted
}

// verify compares the stored commit with the last claim's: commits of its generation do not arrive any more. known is false if the
// commit could not be read.
func (p *partition) verify(stored progress.Commit, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doubted = false
	if !known || !p.state.Hands(stored) {
		p.untold = true
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
