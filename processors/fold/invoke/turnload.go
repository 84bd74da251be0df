package invoke

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/retry"
	"github.com/turntable-streams/turntable/processors"
)

// loadedAtOnce is how many partitions are read at the same time when the index is loaded.
const loadedAtOnce = 8

// load adds the records since the look-back to the index, and then closes ready. The follower adds those that are written
// from now on. After a failure, load retries with backoff until ctx is done.
func (p *Pipeline) load(ctx context.Context) error {
	warning := retry.NewWarning(p.logger, p.config.Clock, "invoke: cannot index the turns, retrying", "invoke: the turns are indexed")
	err := retry.Until(ctx, func() error {
		select {
		case <-p.follower.Ready():
			return p.loadTopics(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	}, func(err error) { warning.Failed(err) })
	if err == nil {
		warning.Over()
		close(p.ready)
	}
	return nil
}

// loadTopics adds the records that were written since the look-back.
func (p *Pipeline) loadTopics(ctx context.Context) error {
	since := p.config.Clock.Now().Add(-p.config.Lookback)
	tasks, ctx := errgroup.WithContext(ctx)
	tasks.SetLimit(loadedAtOnce)
	for _, topic := range p.followed() {
		partitions, err := p.follower.Partitions(topic)
		if err != nil {
			return errors.Join(fmt.Errorf("invoke: %w", err), tasks.Wait())
		}
		for _, partition := range partitions {
			tasks.Go(func() error { return p.loadPartition(ctx, topic, partition, since) })
		}
	}
	return tasks.Wait()
}

func (p *Pipeline) loadPartition(ctx context.Context, topic string, partition int32, since time.Time) error {
	begin, err := p.follower.OffsetAt(topic, partition, since)
	if err == nil {
		_, err = p.follower.ReplayFrom(ctx, topic, partition, begin, func(_ context.Context, r processors.Inbound) bool {
			p.hub.handle(r)
			return true
		})
	}
	if err != nil {
		return fmt.Errorf("invoke: index %s/%d: %w", topic, partition, err)
	}
	return nil
}
