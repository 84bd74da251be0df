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
	"github.com/turntable-streams/turntable/internal/retry"
	"github.com/turntable-streams/turntable/topics"
)

// preparation returns the function that creates the topics of WithTopics and WithTopicSpecs, or nil without them. It retries with the restart
// policy of the processor while brokers are unavailable. Topics that do not fit together are an error immediately.
func (o *options) preparation(c instance.Config) func(context.Context, func(error)) error {
	var catalog topics.Catalog
	switch {
	case o.catalog != nil:
		catalog = *o.catalog
	case len(o.specs) == 0:
		return nil
	}
	ensure := []topics.EnsureOption{topics.WithSpecs(o.specs...)}
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
	return func(ctx context.Context, waits func(error)) error {
		warning := retry.NewWarning(c.Logger, c.Clock, "topics cannot be created yet, retrying", "topics can be created now")
		_, err := backoff.Retry(ctx, func() (struct{}, error) {
			conf := c.Sarama()
			kafka.LimitGreeting(conf)
			err := kafka.Explain(conf, o.ensureTopics(ctx, c, conf, catalog, ensure), c.Brokers...)
			switch {
			case err == nil:
				warning.Over()
			case errors.Is(err, topics.ErrCoPartitioning), errors.Is(err, topics.ErrPartitions), errors.Is(err, topics.ErrArchive):
				err = backoff.Permanent(err)
			case ctx.Err() != nil: // the processor stops, and there is no retry
			default:
				waits(err)
				warning.Failed(err)
			}
			return struct{}{}, err
		}, backoff.WithBackOff(wait), backoff.WithMaxTries(tries), backoff.WithMaxElapsedTime(0))
		if err != nil {
			return fmt.Errorf("processors: topics: %w", err)
		}
		return nil
	}
}

// DefaultPartitions is the number of partitions of the topics that WithTopics creates, unless WithPartitions sets it or topics of the
// catalog exist: as many processes can share the sessions of an agent. On the broker of package embedded, which is one process, it
// is that of its configuration.
const DefaultPartitions = 12

// ensureTopics creates the missing topics, and logs how many partitions they have.
func (o *options) ensureTopics(ctx context.Context, c instance.Config, conf *sarama.Config, catalog topics.Catalog,
	ensure []topics.EnsureOption,
) (err error) {
	client, err := sarama.NewClient(c.Brokers, conf)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() {
		if failed := client.Close(); failed != nil && !errors.Is(failed, sarama.ErrClosedClient) {
			err = errors.Join(err, fmt.Errorf("disconnect: %w", failed))
		}
	}()
	if o.partitions == 0 {
		embedded, err := kafka.Embedded(client, catalog.Table())
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		if !embedded {
			ensure = append(ensure[:len(ensure):len(ensure)], topics.WithDefaultPartitions(DefaultPartitions))
		}
	}
	created, partitions := 0, int32(0)
	ensure = append(ensure[:len(ensure):len(ensure)], topics.WithCreated(func(_ string, n int32) { created, partitions = created+1, n }))
	admin, err := sarama.NewClusterAdminFromClient(client) // closing it would close the client
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	err = topics.Ensure(ctx, admin, catalog, ensure...)
	if created > 0 {
		of := zap.Int32("partitions", partitions)
		if partitions < 1 {
			of = zap.String("partitions", "the broker's default")
		}
		c.Logger.Info("topics were created: as many processes as partitions can share the sessions; processors/archive changes "+
			"their number later, while the agent is stopped (WithPartitions)", zap.String("agent", catalog.Agent), zap.Int("topics", created), of)
	}
	return err
}

// The restart policy of a running processor.
const (
	defaultRestartLimit   = 20
	defaultRestartInitial = 100 * time.Millisecond
	defaultRestartMax     = 15 * time.Second
)

// EnsureTopics creates the topics of WithTopics and WithTopicSpecs as Processor.Run does before it joins the group, for a program that writes to
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
	return prepare(ctx, func(error) {})
}
