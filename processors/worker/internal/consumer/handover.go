package consumer

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/worker/internal/consumer/progress"
)

// watchEvery is how often a member with deferred records asks what has become of them.
const watchEvery = 500 * time.Millisecond

// watch ends the deferral of records that their previous owner has settled, or whose previous owner has left the group, until
// ctx ends.
func (m *member) watch(ctx context.Context) {
	ticker := m.config.Clock.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return
		}
		waiting := slices.DeleteFunc(m.all(), func(p *partition) bool { return !p.deferred() })
		if len(waiting) == 0 {
			continue
		}
		// Members before notes: a member may leave after it has noted something.
		members, err := m.offsets.members()
		if err == nil {
			var notes []progress.Note
			if notes, err = m.offsets.notes(); err == nil {
				m.resolve(waiting, members, notes)
			}
		}
		if err != nil {
			m.status.fail(err)
			m.config.Logger.Warn("the state of calls on other members is unknown; their records wait until the handover has passed",
				zap.String("group", m.config.Group), zap.Error(err))
		}
	}
}

// resolve ends deferrals.
func (m *member) resolve(waiting []*partition, members map[progress.Runner]bool, notes []progress.Note) {
	for _, p := range waiting {
		for _, n := range notes {
			if n.Place == progress.PlaceOf(p.topic, p.id) {
				c, next := p.confirm(n)
				if next != nil {
					m.work.Go(func() { c.proceed(next) })
				}
			}
		}
		p.depart(members)
	}
	m.wakeCommit()
}

// deferred reports whether the partition is claimed and a record waits for a call of another member.
func (p *partition) deferred() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.claim != nil && p.state.Deferred()
}

// confirm settles a deferred record. It returns the next task with the same key, if one waits.
func (p *partition) confirm(n progress.Note) (*claim, *task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.claim
	if c == nil {
		return nil, nil
	}
	left, ok := p.state.Confirm(n)
	if !ok {
		return nil, nil
	}
	c.free(left)
	return c, c.settled(n.Offset)
}

// depart ends the deferral of records of members that have left the group. The next tick starts them.
func (p *partition) depart(members map[progress.Runner]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.Depart(func(r progress.Runner) bool { return members[r] }, p.member.config.Clock.Now())
}

// note adds a note to the next commit.
func (m *member) note(n progress.Note) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notes, m.noted = append(m.notes, n), true
}

// adopt keeps the notes of a partition's previous owner in the commits of this member.
func (m *member) adopt(metadata progress.Checkpoint) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range metadata.Notes {
		if !slices.Contains(m.notes, n) {
			m.notes = append(m.notes, n)
		}
	}
}

// currentNotes returns the notes whose handover has not passed. It asks for a commit of one partition if there are new ones.
func (m *member) currentNotes() []progress.Note {
	now := m.config.Clock.Now()
	m.mu.Lock()
	m.notes = slices.DeleteFunc(m.notes, func(n progress.Note) bool { return n.Until.Before(now) })
	notes, noted := slices.Clone(m.notes), m.noted
	m.mu.Unlock()
	if !noted {
		return notes
	}
	for _, p := range m.all() {
		if p.carry() {
			m.mu.Lock()
			m.noted = false
			m.mu.Unlock()
			break
		}
	}
	return notes
}

// carry asks for a commit of the partition. It reports false if that is not possible.
func (p *partition) carry() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.claim == nil {
		return false
	}
	p.state.Retry(progress.Now)
	return p.state.Urgency() == progress.Now
}
