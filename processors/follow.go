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

	"github.com/turntable-streams/turntable/internal/consume"
	"github.com/turntable-streams/turntable/internal/kafka"
)

// ErrNotFollowing is returned by Replay while Run has no connection.
var ErrNotFollowing = errors.New("processors: the follower is not running")

// Follower reads topics as they grow, committed records only, in every process that follows: for what has to reach the
// process that waits for it, such as the HTTP request that asked, wherever its partition is handled. It is no member of
// a group and commits nothing. One is enough for a process; its methods are safe for concurrent use.
type Follower struct {
	brokers []string
	topics  []string
	handle  func(Inbound)
	conf    *sarama.Config
	logger  *zap.Logger

	ready     chan struct{} // closed when every partition is read
	readyOnce sync.Once

	mu     sync.Mutex
	client sarama.Client   // of replays; nil while there is none
	over   context.Context // ends with it
	usage  sync.WaitGroup
}

// NewFollower checks the options that New takes too; those about groups, tables and topics have no effect. It contacts
// nobody before Run. handle gets the records of a partition in order, those of several partitions at the same time;
// while it blocks, its partition waits.
func NewFollower(brokers, topics []string, handle func(Inbound), opts ...Option) (*Follower, error) {
	conf, logger, err := client(brokers, opts)
	if err != nil {
		return nil, err
	}
	if len(topics) == 0 || handle == nil {
		return nil, fmt.Errorf("%w: a follower without topics or without a handler", ErrConfig)
	}
	conf.Consumer.Return.Errors = true
	return &Follower{
		brokers: brokers, topics: topics, handle: handle, conf: conf, logger: logger, ready: make(chan struct{}),
	}, nil
}

// Ready is closed when Run reads every partition: records that are written from then on are handled.
func (f *Follower) Ready() <-chan struct{} { return f.ready }

// Run reads from the ends that the topics have when it begins until ctx ends, and then returns nil. It waits for
// brokers that are away and topics that are missing, and goes on behind the last record that was handled. It is called
// once.
func (f *Follower) Run(ctx context.Context) error {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 50*time.Millisecond, 5*time.Second
	at := positions{}
	for {
		err := f.serve(ctx, at, wait.Reset)
		if ctx.Err() != nil {
			return nil
		}
		pause := wait.NextBackOff()
		f.logger.Warn("follower starts again", zap.Strings("topics", f.topics), zap.Duration("wait", pause), zap.Error(err))
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// place is a partition of a topic.
type place struct {
	topic     string
	partition int32
}

// positions are where reading goes on, by partition.
type positions map[place]int64

// serve reads until something fails or ctx ends.
func (f *Follower) serve(ctx context.Context, at positions, connected func()) error {
	client, err := sarama.NewClient(f.brokers, kafka.Copy(f.conf))
	if err != nil {
		return fmt.Errorf("processors: connect: %w", err)
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
	var mu sync.Mutex // over at, once the first reader runs
	for p, offset := range maps.Clone(at) {
		claim, err := consumer.ConsumePartition(p.topic, p.partition, offset)
		if err != nil {
			cancel(err)
			return fmt.Errorf("processors: follow %s/%d: %w", p.topic, p.partition, err)
		}
		readers.Go(func() {
			next, err := f.read(inner, claim, offset)
			mu.Lock()
			at[p] = next
			mu.Unlock()
			if err != nil {
				cancel(err)
			}
		})
	}
	// A broker answers a connection's requests one after another: behind the fetches that wait for news, a replay would
	// wait too.
	conf := kafka.Copy(f.conf)
	conf.Consumer.MaxWaitTime = replayWait
	asking, err := sarama.NewClient(f.brokers, conf)
	if err != nil {
		cancel(err)
		return fmt.Errorf("processors: connect: %w", err)
	}
	f.connect(inner, asking)
	defer f.disconnect(asking)
	connected()
	f.readyOnce.Do(func() { close(f.ready) })
	<-inner.Done()
	return context.Cause(inner)
}

// locate sets the ends of partitions that have not been read yet, and leaves the others but for what is gone. A topic
// that was made anew is read from its beginning.
func (f *Follower) locate(client sarama.Client, at positions) error {
	for _, topic := range f.topics {
		partitions, err := client.Partitions(topic)
		if err != nil {
			return fmt.Errorf("processors: partitions of %s: %w", topic, err)
		}
		for _, partition := range partitions {
			newest, err := client.GetOffset(topic, partition, sarama.OffsetNewest)
			if err != nil {
				return fmt.Errorf("processors: offset of %s/%d: %w", topic, partition, err)
			}
			p := place{topic, partition}
			known, ok := at[p]
			if !ok {
				at[p] = newest
				continue
			}
			oldest, err := client.GetOffset(topic, partition, sarama.OffsetOldest)
			if err != nil {
				return fmt.Errorf("processors: offset of %s/%d: %w", topic, partition, err)
			}
			if at[p] = max(oldest, known); known > newest { // it is another topic of that name
				at[p] = oldest
			}
		}
	}
	return nil
}

// read hands over the records of a partition, until ctx ends or the partition fails. It returns where to go on.
func (f *Follower) read(ctx context.Context, claim sarama.PartitionConsumer, next int64) (int64, error) {
	var errs sync.WaitGroup
	errs.Go(func() {
		for err := range claim.Errors() {
			f.logger.Warn("follower", zap.String("topic", err.Topic), zap.Int32("partition", err.Partition), zap.Error(err.Err))
		}
	})
	defer errs.Wait()
	defer drain(claim)
	for {
		select {
		case m, ok := <-claim.Messages():
			if !ok {
				return next, errors.New("processors: a partition ended")
			}
			f.handle(inboundOf(m))
			next = m.Offset + 1
		case <-ctx.Done():
			return next, nil
		}
	}
}

func inboundOf(m *sarama.ConsumerMessage) Inbound {
	r := Inbound{
		Topic: m.Topic, Partition: m.Partition, Offset: m.Offset, Timestamp: m.Timestamp, Key: m.Key, Value: m.Value,
	}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, consume.Header{Name: string(h.Key), Value: h.Value})
	}
	return r
}

func (f *Follower) connect(ctx context.Context, client sarama.Client) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.client, f.over = client, ctx
}

// disconnect closes the client of replays when nobody uses it any more.
func (f *Follower) disconnect(client sarama.Client) {
	f.mu.Lock()
	f.client, f.over = nil, nil
	f.mu.Unlock()
	f.usage.Wait()
	f.close(client)
}

func (f *Follower) close(client sarama.Client) {
	if err := client.Close(); err != nil && !errors.Is(err, sarama.ErrClosedClient) {
		f.logger.Warn("follower: close", zap.Error(err))
	}
}

// drain closes a partition's reader, and waits until it has ended.
func drain(claim sarama.PartitionConsumer) {
	claim.AsyncClose()
	for range claim.Messages() { // what it has fetched
	}
}
