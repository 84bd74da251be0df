package processors

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/recovery"
)

// openTransaction is how long a replay waits for a transaction that is open at the end of what it reads.
const openTransaction = 10 * time.Second

// replayWait is how long the fetch that is out when a replay ends may hold it up.
const replayWait = 10 * time.Millisecond

// Replay hands over the committed records of a key that a topic has when Replay is called, from a time on, in order,
// until take returns false. It returns the offset behind the last record that it looked at. Whoever began to take what
// Run handles before Replay was called, and leaves out what stands before that offset, misses nothing and gets nothing
// twice. It reads the key's whole partition from that time on, needs Run to be running, else it fails with
// ErrNotFollowing, and ends with it. The context that take gets ends with both.
func (f *Follower) Replay(
	ctx context.Context, topic, key string, since time.Time, take func(context.Context, Inbound) (more bool),
) (next int64, err error) {
	client, over, err := f.use()
	if err != nil {
		return 0, err
	}
	defer f.usage.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(over, cancel)()
	partitions, err := client.Partitions(topic)
	if err != nil {
		return 0, fmt.Errorf("processors: partitions of %s: %w", topic, err)
	}
	partition := codec.PartitionOf(key, int32(len(partitions)))
	end, err := recovery.StableEnd(ctx, client, topic, partition, openTransaction, nil)
	if err != nil {
		return 0, fmt.Errorf("processors: replay: %w", err)
	}
	begin, err := client.GetOffset(topic, partition, since.UnixMilli())
	if err != nil {
		return 0, fmt.Errorf("processors: replay %s/%d: offset of a time: %w", topic, partition, err)
	}
	if begin < 0 || begin >= end {
		return end, nil
	}
	// A consumer of its own: one reads a partition once only.
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return 0, fmt.Errorf("processors: replay: %w", err)
	}
	claim, err := consumer.ConsumePartition(topic, partition, begin)
	if err != nil {
		return 0, fmt.Errorf("processors: replay %s/%d: %w", topic, partition, err)
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
				return 0, fmt.Errorf("processors: replay %s/%d: the partition ended: %w", topic, partition, failed)
			}
			switch {
			case m.Offset >= end:
				return end, nil
			case string(m.Key) == key && !take(ctx, inboundOf(m)):
				return m.Offset + 1, nil
			case ctx.Err() != nil: // what was taken last may have been cut short
				return 0, ctx.Err()
			case m.Offset == end-1:
				return end, nil
			}
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// use is the connection, kept open until usage.Done.
func (f *Follower) use() (sarama.Client, context.Context, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.client == nil {
		return nil, nil, ErrNotFollowing
	}
	f.usage.Add(1)
	return f.client, f.over, nil
}
