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
)

// ErrPanic is wrapped by the error of a handler that panicked.
var ErrPanic = errors.New("consume: handler panicked")

// Run joins the group and handles records until ctx ends. Then it waits for running handlers (Config.Drain), commits the
// offsets, leaves the group and returns nil. Every error it returns concerns the configuration and wraps ErrConfig. On an
// unavailable broker, a missing topic or a failed handler, Run retries with backoff.
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
		if ctx.Err() != nil {
			return nil
		}
		if m.progress.Swap(false) {
			wait.Reset()
		}
		pause := wait.NextBackOff()
		c.Logger.Warn("consumer restarts", zap.String("group", c.Group), zap.Duration("wait", pause), zap.Error(err))
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// member is one member of the group. It lasts over several sessions.
type member struct {
	config   Config
	slots    chan struct{}
	progress atomic.Bool // an offset was marked since the last restart
}

// serve joins the group and handles records until a handler or the client fails, or ctx ends.
func (m *member) serve(ctx context.Context) error {
	group, err := sarama.NewConsumerGroup(m.config.Brokers, m.config.Group, m.config.client())
	if err != nil {
		return fmt.Errorf("consume: connect: %w", err)
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
		inner, cancel := context.WithCancelCause(ctx)
		err := group.Consume(inner, m.config.Topics, &session{member: m, fail: cancel})
		failure := context.Cause(inner)
		cancel(nil)
		switch {
		case ctx.Err() != nil:
			return nil
		case failure != nil:
			return failure
		case err != nil:
			return fmt.Errorf("consume: %w", err)
		}
		// The group rebalances: rejoin immediately.
	}
}

// session is a member during one generation of the group. It implements sarama.ConsumerGroupHandler.
type session struct {
	*member
	fail context.CancelCauseFunc
}

// Setup implements sarama.ConsumerGroupHandler.
func (s *session) Setup(of sarama.ConsumerGroupSession) error {
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
			c.begin(ctx, m)
		case <-ctx.Done():
			return nil
		}
	}
}
