package consume

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
	"github.com/turntable-streams/turntable/internal/kafka"
)

// ErrPanic is wrapped by the error of a handler that panicked.
var ErrPanic = errors.New("consume: handler panicked")

// Run is a member of the group until ctx ends; then what was begun is finished, offsets are committed, the member
// leaves, and Run returns nil. It returns cut.ErrFenced when another process has taken the instance's identity. Any other
// error is about the configuration: a broker that is away, a missing topic and a handler's failure are waited out.
func Run(ctx context.Context, config Config) error {
	c, err := config.withDefaults()
	if err != nil {
		return err
	}
	conf := c.client()
	if err := conf.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 100*time.Millisecond, 15*time.Second
	m := &member{config: c, slots: make(chan struct{}, c.Concurrency)}
	for {
		err := m.serve(ctx)
		switch {
		case ctx.Err() != nil:
			m.leave()
			return nil
		case errors.Is(err, cut.ErrFenced): // whoever joins again would fence for ever (R4)
			return err
		}
		if m.progress.Swap(false) {
			wait.Reset()
		}
		pause := wait.NextBackOff()
		c.Logger.Warn("consumer starts again", zap.String("group", c.Group), zap.Duration("wait", pause), zap.Error(err))
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// member is one member of the group, over its sessions.
type member struct {
	config   Config
	slots    chan struct{}
	progress atomic.Bool // a record was done since the last restart

	last cut.Member // of the last session
}

// leave removes a static member from its group.
func (m *member) leave() {
	c := m.config
	if c.Instance == "" || c.KeepMembership {
		return
	}
	if err := kafka.RemoveMember(c.Brokers, c.Sarama(), c.Group, c.Instance); err != nil {
		c.Logger.Warn("the static member stays in the group until its session times out", zap.String("group", c.Group),
			zap.Error(err))
	}
}

// serve joins the group and handles records until something fails, or ctx ends.
func (m *member) serve(ctx context.Context) error {
	client, err := sarama.NewClient(m.config.Brokers, m.config.client())
	if err != nil {
		return fmt.Errorf("consume: connect: %w", err)
	}
	defer func() {
		if err := client.Close(); err != nil {
			m.config.Logger.Warn("consumer group: close client", zap.String("group", m.config.Group), zap.Error(err))
		}
	}()
	group, err := sarama.NewConsumerGroupFromClient(m.config.Group, client)
	if err != nil {
		return fmt.Errorf("consume: %w", err)
	}
	var reports sync.WaitGroup
	reports.Go(func() {
		for err := range group.Errors() {
			m.config.Logger.Warn("consumer group", zap.String("group", m.config.Group), zap.Error(err))
		}
	})
	defer reports.Wait()
	defer func() {
		if err := group.Close(); err != nil {
			m.config.Logger.Warn("consumer group: close", zap.String("group", m.config.Group), zap.Error(err))
		}
	}()
	for {
		if err := cut.Replaced(client, m.last); err != nil {
			return fmt.Errorf("consume: %w", err)
		}
		inner, cancel := context.WithCancelCause(ctx)
		err := group.Consume(inner, m.config.Topics, &session{member: m, fail: cancel})
		failure := context.Cause(inner)
		cancel(nil)
		switch {
		case ctx.Err() != nil:
			return nil
		case failure != nil:
			return failure
		case errors.Is(err, sarama.ErrFencedInstancedId):
			return fmt.Errorf("consume: %w: group %s, instance %s", cut.ErrFenced, m.config.Group, m.config.Instance)
		case err != nil:
			return fmt.Errorf("consume: %w", err)
		}
		// The group rebalances: join again at once.
	}
}

// session is a member's part in one generation of the group; it is Sarama's handler.
type session struct {
	*member
	fail context.CancelCauseFunc
}

// Setup implements sarama.ConsumerGroupHandler.
func (s *session) Setup(of sarama.ConsumerGroupSession) error {
	s.last = cut.Member{
		Group: s.config.Group, ID: of.MemberID(), Instance: s.config.Instance, Generation: of.GenerationID(),
	}
	if s.config.Assigned != nil {
		n := 0
		for _, partitions := range of.Claims() {
			n += len(partitions)
		}
		s.config.Assigned(n)
	}
	return nil
}

// Cleanup implements sarama.ConsumerGroupHandler.
func (*session) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim implements sarama.ConsumerGroupHandler.
func (s *session) ConsumeClaim(of sarama.ConsumerGroupSession, messages sarama.ConsumerGroupClaim) error {
	ctx := of.Context()
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	c := &claim{
		handle: s.config.Handle, slots: s.slots, space: make(chan struct{}, s.config.MaxInFlightPerPartition),
		ordered: s.config.Ordered, fail: s.fail, work: work, busy: map[string][]task{},
		mark: func(next int64) {
			s.progress.Store(true)
			of.MarkOffset(messages.Topic(), messages.Partition(), next, "")
		},
	}
	defer c.drain(s.config.Drain, stop)
	for {
		select {
		case c.space <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		select {
		case m, ok := <-messages.Messages():
			if !ok {
				return nil
			}
			c.begin(ctx, recordOf(m))
		case <-ctx.Done():
			return nil
		}
	}
}
