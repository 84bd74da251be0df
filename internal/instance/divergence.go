package instance

import (
	"fmt"

	"github.com/IBM/sarama"
)

// Divergence returns the first offset of a partition that was written under a leader epoch after the given one, or the
// end of the log if there is none. Records of epochs up to the given one are the same on every leader. A reader that has
// read under that epoch, and whose position was truncated by an unclean leader election, has therefore read everything
// before the returned offset and nothing from it on. Divergence is a binary search with one fetch per step.
//
// An OffsetForLeaderEpoch request would return the offset directly, but Sarama does not have it.
func Divergence(client sarama.Client, topic string, partition, epoch int32) (int64, error) {
	fail := func(err error) (int64, error) {
		return 0, fmt.Errorf("recovery: %s/%d: end of leader epoch %d: %w", topic, partition, epoch, err)
	}
	low, err := client.GetOffset(topic, partition, sarama.OffsetOldest)
	if err != nil {
		return fail(err)
	}
	high, err := client.GetOffset(topic, partition, sarama.OffsetNewest)
	if err != nil {
		return fail(err)
	}
	for low < high {
		middle := low + (high-low)/2
		block, err := fetch(client, topic, partition, middle, divergenceBytes, sarama.ReadUncommitted)
		if err != nil {
			return fail(err)
		}
		switch batch := batchFrom(block, middle); {
		case batch == nil: // there are no batches from here on
			high = middle
		case batch.PartitionLeaderEpoch > epoch:
			high = min(middle, batch.FirstOffset)
		default:
			low = batch.LastOffset() + 1
		}
	}
	return high, nil
}

// divergenceBytes is the size of a fetch of which only the first batch is used. Brokers return a larger batch complete.
const divergenceBytes = 64 << 10

// batchFrom returns the first batch that does not end before an offset, or nil if there is none.
func batchFrom(block *sarama.FetchResponseBlock, offset int64) *sarama.RecordBatch {
	for _, set := range block.RecordsSet {
		if b := set.RecordBatch; b != nil && !b.PartialTrailingRecord && b.LastOffset() >= offset {
			return b
		}
	}
	return nil
}
