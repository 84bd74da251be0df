package consumer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/retry"
	"github.com/turntable-streams/turntable/processors/worker/internal/consumer/progress"
	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

// The pace of commits. Each commits all partitions of the member that need it.
const (
	// commitPause is the least time between two commits. A record that is settled later than that after the last commit is
	// committed immediately.
	commitPause = 50 * time.Millisecond
	// attemptsWithin is how soon the start of a call and its failures are committed, if no settled record commits them earlier.
	attemptsWithin = time.Second
	// retryPause is the time after a commit that failed.
	retryPause = 200 * time.Millisecond
	// lastTries is how often the last commit of a claim is tried, or repeated after one that may arrive late.
	lastTries = 3
)

// member is one member of the group. It lasts over several generations.
type member struct {
	config   Config
	connect  func() (coordinator, sarama.ConsumerGroup, error)
	handle   source.Handle
	stopping <-chan struct{} // closed when the worker stops: no record is started any more
	slots    chan struct{}   // bounds the calls of the handler, running and waiting: a send acquires, a receive releases
	work     sync.WaitGroup  // goroutines that call the handler
	wake     chan struct{}   // asks for a commit
	lease    *cut.Lease      // renewed by heartbeats before a call
	status   *status
	warning  *retry.Warning // while the group is not available

	committing chan struct{} // a send begins a commit: one at a time, and none across the end of a generation

	mu         sync.Mutex
	group      coordinator
	partitions map[at]*partition
	notes      notes
	generation sarama.ConsumerGroupSession // nil between generations
}

func (m *member) stopped() bool {
	select {
	case <-m.stopping:
		return true
	default:
		return false
	}
}

// drain waits until no call runs. None starts after that, because drain keeps all slots.
func (m *member) drain() {
	for range cap(m.slots) {
		m.slots <- struct{}{}
	}
}

// tickEvery is how precise the ends of handovers and deferrals are.
func (m *member) tickEvery() time.Duration {
	return max(min(m.config.Handover/4, 250*time.Millisecond), time.Millisecond)
}

// tick ends handovers and starts deferred records until ctx ends.
func (m *member) tick(ctx context.Context) {
	ticker := m.config.Clock.NewTicker(m.tickEvery())
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return
		}
		for _, p := range m.all() {
			c, due, commit := p.tick(m.config.Clock.Now())
			for _, t := range due {
				m.work.Go(func() { c.proceed(t) })
			}
			if commit {
				m.wakeCommit()
			}
		}
	}
}

func (m *member) wakeCommit() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// commits commits whatever asks for it until ctx ends.
func (m *member) commits(ctx context.Context) {
	for {
		select {
		case <-m.wake:
		case <-ctx.Done():
			return
		}
		wait := commitPause
		if err := m.commit(); err != nil {
			if !lostMembership(err) { // otherwise the generation ends
				m.status.fail(err)
				wait = retryPause
				m.wakeCommit()
			}
		}
		if !pause(ctx, wait) {
			return
		}
	}
}

// commit commits all partitions that need it in one request.
func (m *member) commit() error {
	m.committing <- struct{}{}
	defer func() { <-m.committing }()
	group, as, ok := m.membership()
	if !ok {
		return nil
	}
	notes, last := m.currentNotes()
	points, partitions := map[at]progress.Checkpoint{}, map[at]*partition{}
	for _, p := range m.all() {
		if c, ok := p.checkpoint(); ok {
			c.Notes = notes
			points[p.at], partitions[p.at] = c, p
		}
	}
	if len(points) == 0 {
		return nil
	}
	stored, err := group.commit(as, points)
	if len(stored) > 0 {
		m.saveNotes(last)
	}
	for where, p := range partitions {
		if c, ok := stored[where]; ok {
			p.acknowledge(c)
		} else {
			p.retry(points[where], unknownOutcome(err))
		}
	}
	return err
}

// membership returns the coordinator and the membership. It reports false between generations.
func (m *member) membership() (coordinator, membership, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.generation == nil {
		return nil, membership{}, false
	}
	return m.group, membership{m.generation.MemberID(), m.generation.GenerationID()}, true
}

// confirm makes sure that the member has heard from its group recently, and reports false if ctx ends first. A process that was
// suspended does not know that its partitions have moved, and may have records that it has fetched before.
func (m *member) confirm(ctx context.Context) bool {
	for !m.lease.Held() {
		if group, as, ok := m.membership(); ok {
			err := group.confirm(ctx, m.lease, as)
			if err == nil {
				continue // the lease tells: the process may have been suspended before it has read the answer
			}
			m.status.fail(err)
		}
		if !pause(ctx, retryPause) { // a member that was removed ends its generation by the next heartbeat
			return false
		}
	}
	return true
}

// session is the member in one generation. It implements sarama.ConsumerGroupHandler.
type session struct {
	*member
	fetched chan map[at]progress.Commit // has one element: the commits of this generation's partitions, nil before they are fetched
}

func (m *member) session() *session {
	s := &session{member: m, fetched: make(chan map[at]progress.Commit, 1)}
	s.fetched <- nil
	return s
}

// Setup implements sarama.ConsumerGroupHandler.
func (s *session) Setup(of sarama.ConsumerGroupSession) error {
	assigned := map[at]bool{}
	for topic, ids := range of.Claims() {
		for _, id := range ids {
			assigned[at{topic, id}] = true
		}
	}
	s.verify(assigned)
	for _, p := range s.all() {
		p.joined(progress.RunnerOf(of.MemberID()), assigned[p.at], s.config.Clock.Now())
	}
	// Now, because confirm waits for the generation: calls of partitions that have moved must not begin in it.
	s.mu.Lock()
	s.generation = of
	s.notes.saved = -1 // the commits that had them may be replaced by another owner's
	s.mu.Unlock()
	s.status.joined(true)
	s.warning.Over()
	return nil
}

// Cleanup implements sarama.ConsumerGroupHandler.
func (s *session) Cleanup(sarama.ConsumerGroupSession) error {
	s.committing <- struct{}{} // no commit is in flight
	defer func() { <-s.committing }()
	s.mu.Lock()
	s.generation = nil
	s.mu.Unlock()
	for _, p := range s.all() {
		p.endGeneration()
	}
	return nil
}

// ConsumeClaim implements sarama.ConsumerGroupHandler. It returns when the generation ends; it does not wait for calls.
func (s *session) ConsumeClaim(of sarama.ConsumerGroupSession, messages sarama.ConsumerGroupClaim) error {
	ctx := of.Context()
	where := at{messages.Topic(), messages.Partition()}
	commit, err := s.committed(ctx, where, of.Claims(), messages.InitialOffset())
	if err != nil {
		return err
	}
	if saved, ours := progress.Decode(commit.Offset, commit.Metadata); ours {
		s.adopt(saved)
	}
	c := s.partition(where).begin(ctx, messages, commit)
	s.wakeCommit()
	c.read()
	c.end(of.MemberID())
	for try := 1; try <= lastTries; try++ {
		err = s.commit()
		if err == nil && !s.partition(where).repeat() || lostMembership(err) || try == lastTries {
			break
		}
		pause(context.Background(), commitPause)
	}
	if err != nil {
		s.config.Logger.Warn("the last commit of a partition failed: the next owner repeats what was settled since the previous one",
			zap.String("group", s.config.Group), zap.String("topic", where.topic), zap.Int32("partition", where.id), zap.Error(err))
	}
	return nil
}

// committed returns the commit of a partition that is read from start on. The claims of a generation share one request.
func (s *session) committed(ctx context.Context, where at, claims map[string][]int32, start int64) (progress.Commit, error) {
	fetched := <-s.fetched
	defer func() { s.fetched <- fetched }()
	if fetched == nil {
		got, err := repeat(ctx, s.status, func() (map[at]progress.Commit, error) { return s.group.fetch(claims) })
		if err != nil {
			return progress.Commit{}, err
		}
		fetched = got
	}
	commit := fetched[where]
	if start != commit.Offset {
		// The commit is out of range, or an operator has just changed it: its metadata does not apply.
		commit = progress.Commit{Offset: start}
	}
	if _, ours := progress.Decode(commit.Offset, commit.Metadata); ours || commit.Offset < 0 {
		return commit, nil
	}
	// Nothing says which records were started.
	end, err := repeat(ctx, s.status, func() (int64, error) { return s.group.end(where) })
	commit.End = end
	return commit, err
}

// repeat repeats a request until it succeeds or ctx ends.
func repeat[T any](ctx context.Context, s *status, request func() (T, error)) (T, error) {
	for {
		got, err := request()
		if err == nil {
			return got, nil
		}
		s.fail(err)
		if !pause(ctx, retryPause) {
			return got, errors.Join(context.Cause(ctx), err)
		}
	}
}
