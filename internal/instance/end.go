package instance

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/IBM/sarama"
)

// ErrOpenTransaction says that a transaction was still open at the end of a table's log after the limit.
var ErrOpenTransaction = errors.New("recovery: a transaction is open at the end of the log")

// The waits of StableEnd for open transactions.
const (
	firstWait = time.Millisecond
	longWait  = 100 * time.Millisecond
	// A live owner ends its transaction within milliseconds; one that stays open belongs to a dead owner.
	fenceAfter = 250 * time.Millisecond
	fenceAgain = time.Second
)

// StableEnd returns the offset after the last committed data record of a partition, or the oldest offset if there is no
// such record. It blocks until every transaction that had written to the partition when StableEnd was called has ended.
// Goka considers a table recovered when it has read the record before the high watermark, and it never reads a transaction
// marker: with the plain high watermark, recovery hangs on a log that ends in a marker.
//
// StableEnd returns ErrOpenTransaction after limit, and ctx.Err() when ctx ends. fence, if not nil, is called after 250 ms
// of waiting and then once a second.
func StableEnd(ctx context.Context, client sarama.Client, topic string, partition int32, limit time.Duration,
	fence func(),
) (int64, error) {
	oldest, err := client.GetOffset(topic, partition, sarama.OffsetOldest)
	if err != nil {
		return 0, fmt.Errorf("recovery: %s/%d: oldest offset: %w", topic, partition, err)
	}
	high, err := client.GetOffset(topic, partition, sarama.OffsetNewest)
	if err != nil {
		return 0, fmt.Errorf("recovery: %s/%d: high watermark: %w", topic, partition, err)
	}
	stable, err := waitStable(ctx, client, topic, partition, high, limit, fence)
	if err != nil {
		return 0, err
	}
	return dataEnd(ctx, client, topic, partition, oldest, stable)
}

// CommittedEnd returns the offset after the last committed data record of a partition that is not before least, or least
// if there is none. Unlike StableEnd it does not wait for open transactions: it reads the log up to the first one.
func CommittedEnd(ctx context.Context, client sarama.Client, topic string, partition int32, least int64) (int64, error) {
	stable, err := lastStable(client, topic, partition)
	if err != nil {
		return 0, fmt.Errorf("recovery: %s/%d: last stable offset: %w", topic, partition, err)
	}
	if stable <= least {
		return least, nil
	}
	oldest, err := client.GetOffset(topic, partition, sarama.OffsetOldest)
	if err != nil {
		return 0, fmt.Errorf("recovery: %s/%d: oldest offset: %w", topic, partition, err)
	}
	end, err := dataEnd(ctx, client, topic, partition, max(oldest, least), stable)
	if err != nil || end == oldest {
		return least, err
	}
	return end, nil
}

// DataEnd returns the offset after the last committed data record of a partition in [from, to), or from if there is none.
// settled is false if a transaction that wrote to the partition before to is open: the end is not known then.
func DataEnd(ctx context.Context, client sarama.Client, topic string, partition int32, from, to int64,
) (end int64, settled bool, err error) {
	stable, err := lastStable(client, topic, partition)
	if err != nil {
		return 0, false, fmt.Errorf("recovery: %s/%d: last stable offset: %w", topic, partition, err)
	}
	if stable < to {
		return 0, false, nil
	}
	oldest, err := client.GetOffset(topic, partition, sarama.OffsetOldest)
	if err != nil {
		return 0, false, fmt.Errorf("recovery: %s/%d: oldest offset: %w", topic, partition, err)
	}
	if oldest >= to { // deleted
		return from, true, nil
	}
	least := max(oldest, from)
	if end, err = dataEnd(ctx, client, topic, partition, least, to); err != nil {
		return 0, false, err
	}
	if end == least {
		return from, true, nil
	}
	return end, true, nil
}

// dataEnd returns the offset after the last committed data record in [least, stable), or least if there is none.
func dataEnd(ctx context.Context, client sarama.Client, topic string, partition int32, least, stable int64) (int64, error) {
	// Search back from the end in growing steps: the last data record is nearly always among the last few.
	for step := int64(2); ; step *= 4 {
		from := max(least, stable-step)
		last, err := lastData(ctx, client, topic, partition, from, stable)
		if err != nil {
			return 0, fmt.Errorf("recovery: %s/%d: probe from %d to %d: %w", topic, partition, from, stable, err)
		}
		if last >= 0 {
			return last + 1, nil
		}
		if from == least {
			return least, nil
		}
	}
}

// waitStable waits until the last stable offset has reached high.
func waitStable(ctx context.Context, client sarama.Client, topic string, partition int32, high int64,
	limit time.Duration, fence func(),
) (int64, error) {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	next := time.Now().Add(fenceAfter)
	for wait := firstWait; ; wait = min(wait*2, longWait) {
		stable, err := lastStable(client, topic, partition)
		if err != nil {
			return 0, fmt.Errorf("recovery: %s/%d: last stable offset: %w", topic, partition, err)
		}
		if stable >= high {
			return stable, nil
		}
		if fence != nil && time.Now().After(next) {
			fence()
			next = time.Now().Add(fenceAgain)
		}
		again := time.NewTimer(wait)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return 0, ctx.Err()
		case <-timeout.C:
			again.Stop()
			return 0, fmt.Errorf("%w: %s/%d from %d, end %d", ErrOpenTransaction, topic, partition, stable, high)
		}
	}
}

func lastStable(client sarama.Client, topic string, partition int32) (int64, error) {
	req := sarama.NewOffsetRequest(client.Config().Version)
	req.IsolationLevel = sarama.ReadCommitted
	req.AddBlock(topic, partition, sarama.OffsetNewest, 1)
	resp, err := askLeader(client, topic, partition, func(leader *sarama.Broker) (*sarama.OffsetResponse, error) {
		return leader.GetAvailableOffsets(req)
	})
	if err != nil {
		return 0, err
	}
	block := resp.GetBlock(topic, partition)
	switch {
	case block == nil:
		return 0, sarama.ErrIncompleteResponse
	case block.Err != sarama.ErrNoError:
		return 0, block.Err
	case len(block.Offsets) == 1:
		return block.Offsets[0], nil
	}
	return block.Offset, nil
}

// probeBytes is the size of a probe's fetch. If a batch is larger, it is fetched again with twice the size.
const probeBytes = 1 << 20

// lastData returns the offset of the last committed data record in [from, to), or -1 if there is none. It fetches batches
// itself, since a consumer does not expose the offsets of transaction markers.
func lastData(ctx context.Context, client sarama.Client, topic string, partition int32, from, to int64) (int64, error) {
	last, size := int64(-1), int32(probeBytes)
	for at := from; at < to; {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		block, err := fetch(client, topic, partition, at, size, sarama.ReadCommitted)
		if err != nil {
			return 0, err
		}
		next, found := scan(block, at, from, to)
		last = max(last, found)
		switch {
		case next > at:
			at = next
		case len(block.RecordsSet) == 0:
			return last, nil // compacted away up to the end
		default:
			size *= 2
		}
	}
	return last, nil
}

func fetch(client sarama.Client, topic string, partition int32, at int64, size int32, isolation sarama.IsolationLevel,
) (*sarama.FetchResponseBlock, error) {
	// Only the partition's size bounds the response: if the request's own limit cuts it short, kfake leaves the aborted
	// transactions out, and their records would look committed.
	req := &sarama.FetchRequest{
		Version: 11, MaxWaitTime: 100, MinBytes: 1, MaxBytes: math.MaxInt32, Isolation: isolation, SessionEpoch: -1,
	}
	req.AddBlock(topic, partition, at, size, -1)
	resp, err := askLeader(client, topic, partition, func(leader *sarama.Broker) (*sarama.FetchResponse, error) { return leader.Fetch(req) })
	if err != nil {
		return nil, err
	}
	block := resp.GetBlock(topic, partition)
	if block == nil {
		return nil, sarama.ErrIncompleteResponse
	}
	if block.Err != sarama.ErrNoError {
		return nil, block.Err
	}
	return block, nil
}

// scan returns the offset after the batches of a fetch, and the offset of the last committed data record in [from, to), or
// -1 if there is none.
func scan(block *sarama.FetchResponseBlock, at, from, to int64) (next, last int64) {
	next, last = at, -1
	open := slices.Clone(block.AbortedTransactions)
	slices.SortFunc(open, func(a, b *sarama.AbortedTransaction) int { return int(a.FirstOffset - b.FirstOffset) })
	aborted := map[int64]bool{} // by producer id
	for _, set := range block.RecordsSet {
		batch := set.RecordBatch
		if batch == nil || batch.PartialTrailingRecord {
			continue
		}
		end := batch.LastOffset()
		for len(open) > 0 && open[0].FirstOffset <= end {
			aborted[open[0].ProducerID] = true
			open = open[1:]
		}
		next = max(next, end+1)
		switch {
		case batch.Control:
			if abortMarker(batch) {
				delete(aborted, batch.ProducerID)
			}
		case batch.IsTransactional && aborted[batch.ProducerID]:
		default:
			for _, r := range batch.Records {
				if offset := batch.FirstOffset + r.OffsetDelta; offset >= from && offset < to {
					last = max(last, offset)
				}
			}
		}
	}
	return next, last
}

// abortMarker reports whether a control batch aborts its transaction. A control record's key is its version and its type;
// 0 is abort.
func abortMarker(batch *sarama.RecordBatch) bool {
	return len(batch.Records) > 0 && len(batch.Records[0].Key) >= 4 &&
		binary.BigEndian.Uint16(batch.Records[0].Key[2:]) == 0
}
