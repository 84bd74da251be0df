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

// openTransaction is how long a replay waits for a transaction that is open at the end of the range that it reads.
const openTransaction = 10 * time.Second

// replayWait is the longest wait of a fetch of a replay, and so the longest delay when the replay ends.
const replayWait = 10 * time.Millisecond

// Replay passes the committed records of a key to take, in order: those that the topic contains when Replay is called,
// beginning with the first record of the partition that has a timestamp of since or later. It blocks until all are passed
// or take returns false, and returns the offset after the last record that it read. A caller that collects the records
// from Run before it calls Replay, and then skips those before the returned offset, misses no record and gets none twice.
//
// Replay reads the key's whole partition from since on. It returns ErrNotFollowing if Run is not connected, and fails when
// Run ends or loses its connection. The context of take ends with ctx and with that connection.
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
	return replay{client: client, topic: topic, partition: partition, key: key, take: take}.read(ctx, begin, end)
}

// replay is one replay whose partition and bounds are known.
type replay struct {
	client    sarama.Client
	topic     string
	partition int32
	key       string
	take      func(context.Context, Inbound) (more bool)
}

// read passes the records of the key from begin up to end, and returns the offset after the last record that it read.
func (r replay) read(ctx context.Context, begin, end int64) (next int64, err error) {
	// Each replay has a consumer of its own, because a Sarama consumer can read a partition only once at a time.
	consumer, err := sarama.NewConsumerFromClient(r.client)
	if err != nil {
		return 0, fmt.Errorf("processors: replay: %w", err)
	}
	claim, err := consumer.ConsumePartition(r.topic, r.partition, begin)
	if err != nil {
		return 0, fmt.Errorf("processors: replay %s/%d: %w", r.topic, r.partition, err)
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
				return 0, fmt.Errorf("processors: replay %s/%d: the partition's consumer stopped: %w", r.topic, r.partition, failed)
			}
			switch {
			case m.Offset >= end:
				return end, nil
			case string(m.Key) == r.key && !r.take(ctx, inboundOf(m)):
				return m.Offset + 1, nil
			case ctx.Err() != nil: // take may have returned early
				return 0, ctx.Err()
			case m.Offset == end-1:
				return end, nil
			}
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// use returns the client of replays. It stays open until the caller calls usage.Done.
func (f *Follower) use() (sarama.Client, context.Context, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.client == nil {
		return nil, nil, ErrNotFollowing
	}
	f.usage.Add(1)
	return f.client, f.over, nil
}
