package processors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/instance"
	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/topics"
)

// preparation runs before Run joins the group; nil if there is nothing to prepare.
type preparation func(context.Context) error

// preparation returns the function that creates the topics of WithTopics. It retries with the restart policy of the
// processor while brokers are unavailable. Topics that do not fit together are an error immediately.
func (o *options) preparation(c instance.Config) preparation {
	if o.catalog == nil {
		return nil
	}
	var ensure []topics.EnsureOption
	if o.partitions > 0 {
		ensure = append(ensure, topics.WithPartitions(o.partitions))
	}
	if c.Replication > 0 {
		ensure = append(ensure, topics.WithReplication(c.Replication))
	}
	tries := uint(defaultRestartLimit)
	if c.Restart.Limit != 0 {
		tries = uint(max(c.Restart.Limit, 0)) // 0: no limit
	}
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = defaultRestartInitial, defaultRestartMax
	if c.Restart.Initial > 0 {
		wait.InitialInterval, wait.MaxInterval = c.Restart.Initial, c.Restart.Max
	}
	return func(ctx context.Context) error {
		_, err := backoff.Retry(ctx, func() (struct{}, error) {
			conf := c.Sarama()
			kafka.LimitGreeting(conf)
			err := kafka.Explain(conf, topics.EnsureCluster(ctx, c.Brokers, conf, *o.catalog, ensure...), c.Brokers...)
			switch {
			case err == nil:
			case errors.Is(err, topics.ErrCoPartitioning), errors.Is(err, topics.ErrPartitions):
				err = backoff.Permanent(err)
			default:
				c.Logger.Warn("topics cannot be created yet, retrying", zap.Error(err))
			}
			return struct{}{}, err
		}, backoff.WithBackOff(wait), backoff.WithMaxTries(tries), backoff.WithMaxElapsedTime(0))
		return err
	}
}

// The restart policy of a running processor.
const (
	defaultRestartLimit   = 20
	defaultRestartInitial = 100 * time.Millisecond
	defaultRestartMax     = 15 * time.Second
)

// prepared runs the preparation. ready is false if it failed, or if the processor was stopped or killed meanwhile.
func (p *Processor) prepared(ctx context.Context) (ready bool, err error) {
	if p.prepare == nil {
		return true, nil
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	p.mu.Lock()
	p.kill = cancel
	if p.dead {
		cancel()
	}
	p.mu.Unlock()

	p.enter(Recovering, nil)
	err = p.prepare(inner)
	p.mu.Lock()
	dead := p.dead
	if ready = err == nil && !dead; ready {
		p.own = nil // from now on Health is the instance's
	}
	p.mu.Unlock()
	switch {
	case ready:
		return true, nil
	case dead:
		err = ErrKilled
	case ctx.Err() != nil:
		err = nil
	default:
		err = fmt.Errorf("processors: topics: %w", err)
	}
	p.enter(Stopped, err)
	return false, err
}

func (p *Processor) enter(s State, err error) {
	p.mu.Lock()
	p.own = &Health{State: s, Since: p.now(), Err: err}
	p.mu.Unlock()
	if p.state != nil {
		p.state(s)
	}
}

// EnsureTopics creates the topics of WithTopics as Processor.Run does before it joins the group, for a program that writes to
// them earlier. It retries while brokers are unavailable, up to the limit of WithRestartLimit, and blocks until the topics exist.
func EnsureTopics(ctx context.Context, brokers []string, opts ...Option) error {
	conf, _, err := ClientConfig(brokers, opts...)
	if err != nil {
		return err
	}
	o := newOptions(opts)
	c := o.instance
	c.Brokers, c.Sarama = brokers, func() *sarama.Config { return kafka.Copy(conf) }
	prepare := o.preparation(c)
	if prepare == nil {
		return nil
	}
	if err := prepare(ctx); err != nil {
		return fmt.Errorf("processors: topics: %w", err)
	}
	return nil
}
