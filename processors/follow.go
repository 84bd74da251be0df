package processors

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/retry"
)

// NewFollower returns a follower of topics. It validates the options and connects only in Run. It accepts the options of
// New; those for groups, tables and topics have no effect. An error wraps ErrConfig.
//
// handle is called for each record: in order for the records of a partition, concurrently for different partitions. While
// it blocks, its partition waits.
func NewFollower(brokers, topics []string, handle func(Inbound), opts ...Option) (*Follower, error) {
	conf, logger, err := ClientConfig(brokers, opts...)
	if err != nil {
		return nil, err
	}
	if len(topics) == 0 || handle == nil {
		return nil, fmt.Errorf("%w: follower: no topics, or no handler", ErrConfig)
	}
	conf.Consumer.Return.Errors = true
	return &Follower{
		brokers: brokers, topics: topics, handle: handle, conf: conf, logger: logger, ready: make(chan struct{}),
	}, nil
}

// NewTableFollower returns a follower that reads the topics from their beginnings: the table of a group, for example, whose
// topic has the latest row of every key. Ready is then closed once the records that were committed when Run connected are
// handled. Otherwise it is NewFollower.
func NewTableFollower(brokers, topics []string, handle func(Inbound), opts ...Option) (*Follower, error) {
	f, err := NewFollower(brokers, topics, handle, opts...)
	if err != nil {
		return nil, err
	}
	f.whole = true
	return f, nil
}

// Ready returns a channel that is closed once Run reads every partition. Records that are written afterwards are handled.
func (f *Follower) Ready() <-chan struct{} { return f.ready }

// Run starts at the current ends of the topics, or at their beginnings (NewTableFollower). It blocks until ctx ends and then returns nil. After a failure, such as
// unavailable brokers or missing topics, it retries with backoff (50 ms to 5 s) and continues after the last record that
// was handled. Call it once.
func (f *Follower) Run(ctx context.Context) error {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 50*time.Millisecond, 5*time.Second
	warning := retry.NewWarning(f.logger, nil, "follower cannot read its topics yet, trying again", "follower reads its topics")
	at := positions{}
	for {
		err := f.serve(ctx, at, func() {
			wait.Reset()
			warning.Over(zap.Strings("topics", f.topics))
		})
		if ctx.Err() != nil {
			return nil
		}
		pause := wait.NextBackOff()
		warning.Failed(err, zap.Strings("topics", f.topics))
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// positions are the next offsets to read, by partition.
type positions map[place]int64

// serve reads until something fails or ctx ends.
func (f *Follower) serve(ctx context.Context, at positions, connected func()) error {
	conf := kafka.Copy(f.conf)
	kafka.LimitGreeting(conf)
	client, err := sarama.NewClient(f.brokers, conf)
	if err != nil {
		return fmt.Errorf("processors: connect: %w", kafka.Explain(f.conf, err, f.brokers...))
	}
	defer f.close(client)
	if err := f.locate(client, at); err != nil {
		return err
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return fmt.Errorf("processors: follow: %w", err)
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var readers sync.WaitGroup
	defer readers.Wait()
	var mu sync.Mutex // guards at once the first reader runs
	for p, offset := range maps.Clone(at) {
		claim, err := consumer.ConsumePartition(p.topic, p.partition, offset)
		if err != nil {
			cancel(err)
			return fmt.Errorf("processors: follow %s/%d: %w", p.topic, p.partition, err)
		}
		handled := f.progress.of(p)
		handled.advance(offset)
		readers.Go(func() {
			next, err := f.read(inner, p, claim, offset, handled)
			mu.Lock()
			at[p] = next
			mu.Unlock()
			if err != nil {
				cancel(err)
			}
		})
	}
	// A replay uses a connection of its own. A broker answers the requests of a connection in order, so the replay would
	// wait for fetches that wait for new records.
	conf = kafka.Copy(f.conf)
	conf.Consumer.MaxWaitTime = replayWait
	asking, err := sarama.NewClient(f.brokers, conf)
	if err != nil {
		cancel(err)
		return fmt.Errorf("processors: connect: %w", err)
	}
	f.connect(inner, asking)
	defer f.disconnect(asking)
	connected()
	if f.whole {
		if err := f.catchUpTopics(inner); err != nil {
			cancel(err)
		}
	}
	if inner.Err() == nil {
		f.readyOnce.Do(func() { close(f.ready) })
	}
	<-inner.Done()
	return context.Cause(inner)
}

// catchUpTopics blocks until the records of all topics that are committed now are handled.
func (f *Follower) catchUpTopics(ctx context.Context) error {
	for _, topic := range f.topics {
		if err := f.CatchUpTopic(ctx, topic); err != nil {
			return err
		}
	}
	return nil
}

// locate sets the position of a partition that has not been read yet to its end, or its beginning for a follower of tables. Other positions are moved only past
// records that the broker has deleted. A topic that was deleted and created again is read from its beginning.
func (f *Follower) locate(client sarama.Client, at positions) error {
	for _, topic := range f.topics {
		partitions, err := client.Partitions(topic)
		if err != nil {
			return fmt.Errorf("processors: partitions of %s: %w", topic, kafka.Explain(f.conf, err))
		}
		for _, partition := range partitions {
			newest, err := client.GetOffset(topic, partition, sarama.OffsetNewest)
			if err != nil {
				return fmt.Errorf("processors: offset of %s/%d: %w", topic, partition, err)
			}
			p := place{topic, partition}
			known, ok := at[p]
			if !ok && !f.whole {
				at[p] = newest
				continue
			}
			oldest, err := client.GetOffset(topic, partition, sarama.OffsetOldest)
			if err != nil {
				return fmt.Errorf("processors: offset of %s/%d: %w", topic, partition, err)
			}
			if at[p] = max(oldest, known); known > newest { // the topic was deleted and created again
				at[p] = oldest
			}
		}
	}
	return nil
}

// readsAgain is for how long the reads of a partition must not fail until it is said that they work: a success without records is not
// seen, and a broker that does not answer takes 30 s for each failure.
const readsAgain = time.Minute

// read passes the records of a partition to the handler until ctx ends or the partition fails. It returns the next offset.
func (f *Follower) read(
	ctx context.Context, p place, claim sarama.PartitionConsumer, next int64, handled *handled,
) (int64, error) {
	var errs sync.WaitGroup
	warning := retry.NewWarning(f.logger, nil, "follower cannot read a partition, trying again", "follower reads a partition again")
	where := []zap.Field{zap.String("topic", p.topic), zap.Int32("partition", p.partition)}
	errs.Go(func() {
		quiet := time.NewTimer(readsAgain)
		defer quiet.Stop()
		for {
			select {
			case err, ok := <-claim.Errors():
				if !ok {
					return
				}
				warning.Failed(err.Err, where...)
				quiet.Reset(readsAgain)
			case <-quiet.C:
				warning.Over(where...)
			}
		}
	})
	defer errs.Wait()
	defer drain(claim)
	for {
		select {
		case m, ok := <-claim.Messages():
			if !ok {
				return next, errors.New("processors: follow: the partition's consumer stopped")
			}
			warning.Over(where...)
			f.handle(inboundOf(m))
			next = m.Offset + 1
			handled.advance(next)
		case <-ctx.Done():
			return next, nil
		}
	}
}
