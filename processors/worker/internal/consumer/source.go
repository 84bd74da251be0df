package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/retry"
	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

// Source delivers records from a consumer group. It implements source.Source.
type Source struct {
	config  Config
	connect func() (coordinator, sarama.ConsumerGroup, error)
	status  status
	member  atomic.Pointer[member] // nil before Run
}

var _ source.Source = (*Source)(nil)

// New returns a source that is not running.
func New(c Config) *Source {
	c = c.withDefaults()
	return &Source{config: c, connect: c.connect}
}

// connect returns clients of the group.
func (c Config) connect() (coordinator, sarama.ConsumerGroup, error) {
	offsets, err := newOffsets(c)
	if err != nil {
		return nil, nil, err
	}
	group, err := sarama.NewConsumerGroup(c.Brokers, c.Group, c.membership())
	if err != nil {
		offsets.close(c.Logger)
		return nil, nil, err
	}
	return offsets, group, nil
}

// Status implements source.Source.
func (s *Source) Status() source.Status {
	now := s.status.get()
	if m := s.member.Load(); m != nil {
		now.Lag = m.lag()
	}
	return now
}

// Run implements source.Source. It returns an error that wraps ErrConfig for invalid settings, and
// sarama.ErrFencedInstancedId if another process has joined with the same instance ID.
func (s *Source) Run(ctx context.Context, handle source.Handle) error {
	for _, conf := range []*sarama.Config{s.config.membership(), s.config.committing()} {
		if err := conf.Validate(); err != nil {
			return fmt.Errorf("%w: %w", ErrConfig, err)
		}
	}
	m := &member{
		config: s.config, connect: s.connect, handle: handle, status: &s.status, stopping: ctx.Done(),
		slots: make(chan struct{}, s.config.Concurrency+s.config.Waiting), wake: make(chan struct{}, 1), partitions: map[at]*partition{},
		committing: make(chan struct{}, 1), lease: cut.NewLease(s.config.leaseLimit(), cut.Now),
	}
	m.warning = retry.NewWarning(m.log(), nil, "the consumer group is not available; the member tries again", "the member has joined its consumer group")
	s.member.Store(m)
	// The membership lasts until the running calls have returned.
	joined, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	var stopped sync.WaitGroup
	stopped.Go(func() {
		select {
		case <-ctx.Done():
			s.status.stop()
			m.drain()
			m.noteSaved(joined)
			leave()
		case <-joined.Done():
		}
	})
	err := m.run(joined)
	if err != nil { // another process has the records
		for _, p := range m.all() {
			p.loseAll(err.Error())
		}
		leave()
	}
	stopped.Wait()
	m.work.Wait()
	s.status.joined(false)
	return err
}

// run serves until ctx ends, and returns an error only if waiting cannot help.
func (m *member) run(ctx context.Context) error {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 100*time.Millisecond, 15*time.Second
	for {
		err := m.serve(ctx, wait)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, sarama.ErrFencedInstancedId) {
			return fmt.Errorf("consumer: group %s: another process has joined with instance ID %s: this one stops: %w",
				m.config.Group, m.config.InstanceID, err)
		}
		m.restart(ctx, wait, err)
	}
}

func (m *member) log() *zap.Logger { return m.config.Logger.With(zap.String("group", m.config.Group)) }

// restart waits after an error.
func (m *member) restart(ctx context.Context, wait *backoff.ExponentialBackOff, err error) {
	m.status.fail(err)
	m.status.joined(false)
	d := wait.NextBackOff()
	m.warning.Failed(err)
	pause(ctx, d)
}

// serve connects and stays in the group until ctx ends or its clients no longer work.
func (m *member) serve(ctx context.Context, wait *backoff.ExponentialBackOff) error {
	to, group, err := m.connect()
	if err != nil {
		return fmt.Errorf("consumer: connect: %w", err)
	}
	defer to.close(m.config.Logger)
	m.mu.Lock()
	m.group = to
	m.mu.Unlock()
	inner, stop := context.WithCancel(ctx)
	var loops sync.WaitGroup
	loops.Go(func() {
		warning := retry.NewWarning(m.log(), nil, "consumer group", "")
		for err := range group.Errors() {
			m.status.fail(err)
			warning.Failed(err)
		}
	})
	loops.Go(func() { m.tick(inner) })
	loops.Go(func() { m.commits(inner) })
	loops.Go(func() { m.watch(inner) })
	defer loops.Wait()
	defer stop()
	defer func() {
		if err := group.Close(); err != nil {
			m.config.Logger.Warn("the member did not leave its group", zap.String("group", m.config.Group), zap.Error(err))
		}
	}()
	return m.generations(ctx, group, wait)
}

// generations takes part in one generation of the group after another.
func (m *member) generations(ctx context.Context, group sarama.ConsumerGroup, wait *backoff.ExponentialBackOff) error {
	for ctx.Err() == nil {
		began := time.Now()
		err := group.Consume(ctx, m.config.Topics, m.session())
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, sarama.ErrFencedInstancedId), errors.Is(err, sarama.ErrClosedConsumerGroup):
			return err
		case err != nil:
			m.restart(ctx, wait, fmt.Errorf("consumer: %w", err))
		case time.Since(began) > stable:
			wait.Reset()
		default:
			// Another rebalance soon after the last one, or a partition that cannot be read.
			pause(ctx, commitPause)
		}
	}
	return nil
}

// stable is how long a generation lasts if nothing is wrong.
const stable = 5 * time.Second
