package invoke

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors"
)

// loadedAtOnce is how many partitions are read at the same time when the index is loaded.
const loadedAtOnce = 8

// load adds the records since the look-back to the index, and then closes ready. The follower adds those that are written
// from now on. After a failure, load retries with backoff (50 ms to 5 s) until ctx is done.
func (p *Pipeline) load(ctx context.Context) error {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 50*time.Millisecond, 5*time.Second
	for {
		select {
		case <-p.follower.Ready():
		case <-ctx.Done():
			return nil
		}
		err := p.loadIndex(ctx)
		if err == nil && p.config.Gates {
			err = p.loadTopics(ctx, p.hub.gateTopics.names(), nil)
		}
		if err == nil {
			close(p.ready)
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		pause := wait.NextBackOff()
		p.logger.Warn("invoke: cannot index the turns, retrying", zap.Duration("wait", pause), zap.Error(err))
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

func (p *Pipeline) loadIndex(ctx context.Context) error {
	if p.config.TurnTable {
		if loaded, err := p.loadFast(ctx); loaded || err != nil {
			return err
		}
	}
	return p.loadTopics(ctx, p.indexed(), nil)
}

// loadTopics adds the records of topics that were written since the look-back, and that are not before the covered
// offsets.
func (p *Pipeline) loadTopics(ctx context.Context, names []string, covered processors.Offsets) error {
	since := p.config.Clock.Now().Add(-p.config.Lookback)
	tasks, ctx := errgroup.WithContext(ctx)
	tasks.SetLimit(loadedAtOnce)
	for _, topic := range names {
		partitions, err := p.follower.Partitions(topic)
		if err != nil {
			return errors.Join(fmt.Errorf("invoke: %w", err), tasks.Wait())
		}
		for _, partition := range partitions {
			least, _ := covered.Of(topic, partition)
			tasks.Go(func() error { return p.loadPartition(ctx, topic, partition, since, least) })
		}
	}
	return tasks.Wait()
}

func (p *Pipeline) loadPartition(ctx context.Context, topic string, partition int32, since time.Time, least int64,
) error {
	begin, err := p.follower.OffsetAt(topic, partition, since)
	if err == nil {
		_, err = p.follower.ReplayFrom(ctx, topic, partition, max(begin, least), func(_ context.Context, r processors.Inbound) bool {
			p.hub.learn(r)
			return true
		})
	}
	if err != nil {
		return fmt.Errorf("invoke: index %s/%d: %w", topic, partition, err)
	}
	return nil
}
