package processors

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/instance"
)

// ErrNoTopic is wrapped by the errors of Follower about a topic that the brokers do not have.
var ErrNoTopic = errors.New("processors: the topic does not exist")

// openTransaction is how long a replay waits for a transaction that is open at the end of the range that it reads.
const openTransaction = 10 * time.Second

// replayWait is the longest wait of a fetch of a replay, and so the longest delay when the replay ends.
const replayWait = 10 * time.Millisecond

// Replay passes the committed records of a key to take, in order: those that the topic contains when Replay is called,
// beginning with the first record of the partition that has a timestamp of since or later. It blocks until all are passed
// or take returns false. It returns the offset after the last record that it read.
//
// To read the old and the new records of a key without a gap or a repeat: collect the records that Run passes to the
// handler, call Replay, then skip the collected records with an offset below the returned one.
//
// Replay reads the key's whole partition from since on. It returns ErrNotFollowing if Run is not connected, and fails when
// Run ends or loses its connection. The context of take ends with ctx and with that connection.
func (f *Follower) Replay(
	ctx context.Context, topic, key string, since time.Time, take func(context.Context, Inbound) (more bool),
) (next int64, err error) {
	client, ctx, done, err := f.use(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	partition, err := partitionOf(client, topic, key)
	if err != nil {
		return 0, err
	}
	end, err := stableEnd(ctx, client, topic, partition)
	if err != nil {
		return 0, err
	}
	begin, err := offsetAt(client, topic, partition, since)
	if err != nil {
		return 0, err
	}
	return f.replay(ctx, client, section{topic, partition, begin, end}, func(ctx context.Context, r Inbound) bool {
		return string(r.Key) != key || take(ctx, r)
	})
}

// ReplayFrom is Replay for the records of all keys of a partition, beginning at offset begin, or at the oldest record if
// begin was removed.
func (f *Follower) ReplayFrom(
	ctx context.Context, topic string, partition int32, begin int64, take func(context.Context, Inbound) (more bool),
) (next int64, err error) {
	client, ctx, done, err := f.use(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	end, err := stableEnd(ctx, client, topic, partition)
	if err != nil {
		return 0, err
	}
	oldest, err := client.GetOffset(topic, partition, sarama.OffsetOldest)
	if err != nil {
		return 0, fmt.Errorf("processors: replay %s/%d: oldest offset: %w", topic, partition, err)
	}
	return f.replay(ctx, client, section{topic, partition, max(begin, oldest), end}, take)
}

// ReplayRange is ReplayFrom for the records with an offset below end. It does not ask the brokers where the partition ends:
// end must not be higher than the offset after a record that the handler has received, or than an end that Replay returned.
func (f *Follower) ReplayRange(
	ctx context.Context, topic string, partition int32, begin, end int64,
	take func(context.Context, Inbound) (more bool),
) (next int64, err error) {
	client, ctx, done, err := f.use(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	oldest, err := client.GetOffset(topic, partition, sarama.OffsetOldest)
	if err != nil {
		return 0, fmt.Errorf("processors: replay %s/%d: oldest offset: %w", topic, partition, err)
	}
	return f.replay(ctx, client, section{topic, partition, max(begin, oldest), end}, take)
}

// Partitions returns the partitions of a topic. It returns ErrNotFollowing if Run is not connected, and ErrNoTopic if the
// brokers do not have the topic.
func (f *Follower) Partitions(topic string) ([]int32, error) {
	client, _, done, err := f.use(context.Background())
	if err != nil {
		return nil, err
	}
	defer done()
	return partitionsOf(client, topic)
}

// Partition returns the partition to which this library and Java's default partitioner write a key. It returns
// ErrNotFollowing if Run is not connected, and ErrNoTopic if the brokers do not have the topic.
func (f *Follower) Partition(topic, key string) (int32, error) {
	client, _, done, err := f.use(context.Background())
	if err != nil {
		return 0, err
	}
	defer done()
	return partitionOf(client, topic, key)
}

func partitionOf(client sarama.Client, topic, key string) (int32, error) {
	partitions, err := partitionsOf(client, topic)
	if err != nil {
		return 0, err
	}
	return codec.PartitionOf(key, int32(len(partitions))), nil
}

func partitionsOf(client sarama.Client, topic string) ([]int32, error) {
	partitions, err := client.Partitions(topic)
	switch {
	case errors.Is(err, sarama.ErrUnknownTopicOrPartition):
		return nil, fmt.Errorf("%w: %s", ErrNoTopic, topic)
	case err != nil:
		return nil, fmt.Errorf("processors: partitions of %s: %w", topic, err)
	}
	return partitions, nil
}

// OffsetAt returns the offset of the first record of a partition with a timestamp of since or later, or the end of the
// partition if it has none. It returns ErrNotFollowing if Run is not connected.
func (f *Follower) OffsetAt(topic string, partition int32, since time.Time) (int64, error) {
	client, _, done, err := f.use(context.Background())
	if err != nil {
		return 0, err
	}
	defer done()
	begin, err := offsetAt(client, topic, partition, since)
	if err != nil || begin >= 0 {
		return begin, err
	}
	end, err := client.GetOffset(topic, partition, sarama.OffsetNewest)
	if err != nil {
		return 0, fmt.Errorf("processors: replay %s/%d: newest offset: %w", topic, partition, err)
	}
	return end, nil
}

// section is a part of a partition: the records from begin on, before end. A negative begin means that there are none.
type section struct {
	topic      string
	partition  int32
	begin, end int64
}

// stableEnd returns the offset after the last record that is committed or aborted.
func stableEnd(ctx context.Context, client sarama.Client, topic string, partition int32) (int64, error) {
	end, err := instance.StableEnd(ctx, client, topic, partition, openTransaction, nil)
	if err != nil {
		return 0, fmt.Errorf("processors: replay: %w", err)
	}
	return end, nil
}

// offsetAt returns a negative offset if there is no record of that time or later.
func offsetAt(client sarama.Client, topic string, partition int32, since time.Time) (int64, error) {
	offset, err := client.GetOffset(topic, partition, since.UnixMilli())
	if err != nil {
		return 0, fmt.Errorf("processors: replay %s/%d: offset of a time: %w", topic, partition, err)
	}
	return offset, nil
}

// replay passes the records of a section to take and returns the next offset.
func (f *Follower) replay(
	ctx context.Context, client sarama.Client, s section, take func(context.Context, Inbound) (more bool),
) (next int64, err error) {
	if s.begin < 0 || s.begin >= s.end {
		return s.end, nil
	}
	// Each replay has a consumer of its own, because a Sarama consumer can read a partition only once at a time.
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return 0, fmt.Errorf("processors: replay: %w", err)
	}
	claim, err := consumer.ConsumePartition(s.topic, s.partition, s.begin)
	if err != nil {
		return 0, fmt.Errorf("processors: replay %s/%d: %w", s.topic, s.partition, err)
	}
	var failed error
	var errs sync.WaitGroup
	errs.Go(func() {
		for err := range claim.Errors() {
			failed = err
			claim.AsyncClose() // its messages end
		}
	})
	defer errs.Wait()
	defer drain(claim)
	for {
		select {
		case m, ok := <-claim.Messages():
			if !ok {
				errs.Wait()
				return 0, fmt.Errorf("processors: replay %s/%d: the partition's consumer stopped: %w", s.topic, s.partition, failed)
			}
			switch {
			case m.Offset >= s.end:
				return s.end, nil
			case !take(ctx, inboundOf(m)):
				return m.Offset + 1, nil
			case ctx.Err() != nil: // take may have returned early
				return 0, ctx.Err()
			case m.Offset == s.end-1:
				return s.end, nil
			}
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}
