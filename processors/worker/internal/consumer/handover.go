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
		members, err := m.group.members()
		if err == nil {
			var notes []progress.Note
			if notes, err = m.group.notes(); err == nil {
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
		c, next := p.resolve(members, notes)
		for _, t := range next {
			m.work.Go(func() { c.proceed(t) })
		}
	}
	m.wakeCommit()
}

// deferred reports whether the partition is claimed and a record waits for a call of another member.
func (p *partition) deferred() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.claim != nil && p.state.Deferred()
}

// resolve settles the deferred records that notes are about, and ends the deferral of records of members that have left the
// group: the next tick starts them. It returns the next tasks with the keys of those that it has settled. Without a claim it does
// nothing: a deferral must not end before the notes are heeded.
func (p *partition) resolve(members map[progress.Runner]bool, notes []progress.Note) (c *claim, next []*task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c = p.claim; c == nil {
		return nil, nil
	}
	for _, n := range notes {
		if n.Place != progress.PlaceOf(p.topic, p.id) {
			continue
		}
		if left, ok := p.state.Confirm(n); ok {
			c.free(left)
			if t := c.settled(n.Offset); t != nil {
				next = append(next, t)
			}
		}
	}
	p.state.Depart(func(r progress.Runner) bool { return members[r] }, p.member.config.Clock.Now())
	return c, next
}

// notes are what a member has to say about calls that were settled after their partition had moved.
type notes struct {
	all   []progress.Note
	last  int // how many there were so far
	saved int // how many of those were in a commit that was stored in this generation
}

// note adds a note to the next commit.
func (m *member) note(n progress.Note) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notes.all = append(m.notes.all, n)
	m.notes.last++
}

// adopt keeps the notes of a partition's previous owner in the commits of this member.
func (m *member) adopt(metadata progress.Checkpoint) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range metadata.Notes {
		if !slices.Contains(m.notes.all, n) {
			m.notes.all = append(m.notes.all, n)
		}
	}
}

// currentNotes returns the notes whose handover has not passed, and how many there were so far. It asks for a commit of one
// partition if there are new ones.
func (m *member) currentNotes() (current []progress.Note, last int) {
	now := m.config.Clock.Now()
	m.mu.Lock()
	m.notes.all = slices.DeleteFunc(m.notes.all, func(n progress.Note) bool { return n.Until.Before(now) })
	current, last = slices.Clone(m.notes.all), m.notes.last
	unsaved := last > m.notes.saved
	m.mu.Unlock()
	if unsaved && len(current) > 0 {
		_ = slices.ContainsFunc(m.all(), (*partition).carry)
	}
	return current, last
}

// saveNotes records that a commit with the first notes was stored.
func (m *member) saveNotes(last int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notes.saved = last
}

// noteSaved blocks until no note waits for a commit, so that a member that leaves takes none with it: during a rebalance it
// stays until it has partitions again. It gives up when it gets none, or after a time.
func (m *member) noteSaved(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for {
		m.mu.Lock()
		idle := m.generation != nil && len(m.generation.Claims()) == 0
		waits := m.notes.last > m.notes.saved && len(m.notes.all) > 0
		m.mu.Unlock()
		if idle || !waits {
			return
		}
		m.wakeCommit()
		if !pause(ctx, commitPause) {
			return
		}
	}
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

// verify reads the commits of partitions that were handed over by a commit that an earlier one may have replaced.
func (s *session) verify(assigned map[at]bool) {
	doubted := map[string][]int32{}
	for _, p := range s.all() {
		if !assigned[p.at] && p.isDoubted() {
			doubted[p.topic] = append(doubted[p.topic], p.id)
		}
	}
	if len(doubted) == 0 {
		return
	}
	stored, err := s.group.fetch(doubted)
	if err != nil {
		s.status.fail(err)
	}
	for topic, ids := range doubted {
		for _, id := range ids {
			where := at{topic, id}
			s.partition(where).verify(stored[where], err == nil)
		}
	}
}
