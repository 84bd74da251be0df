package archive

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// source is where the records of a plan are: in the topics themselves, in copies, or in files.
type source interface {
	// read calls yield with the committed records of a partition at the offsets from from to before to, in order.
	read(ctx context.Context, topic string, partition int32, from, to int64, yield func(*kgo.Record) error) error
}

// The size of a fetch.
const (
	fetchBytes = 4 << 20
	fetchWait  = 500 // ms
	// A log whose last records were compacted away has nothing at its end. This many answers in a row without a batch say so: half a
	// minute, because a broker that is slow to read its log, or a tier of it, may answer with nothing too.
	emptyFetches = 60
)

// read implements source. It asks for batches itself: a consumer does not tell how far it is where a log has no records, because they
// were compacted, or aborted, or are the marks of transactions.
func (c *cluster) read(ctx context.Context, topic string, partition int32, from, to int64, yield func(*kgo.Record) error) error {
	at, size, empty := from, int32(fetchBytes), 0
	for at < to {
		part, err := c.fetch(ctx, topic, partition, at, size)
		if errors.Is(err, kerr.OffsetOutOfRange) { // the oldest records were deleted by age since the plan was made
			starts, err2 := c.admin.ListStartOffsets(ctx, topic)
			if o, ok := starts.Lookup(topic, partition); err2 == nil && ok && o.Err == nil && o.Offset > at {
				at = o.Offset
				continue
			}
		}
		if err != nil {
			return err
		}
		records, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
			Offset: at, Topic: topic, Partition: partition, IsolationLevel: kgo.ReadCommitted(),
		}, part, kgo.DefaultDecompressor(), nil)
		if records.Err != nil {
			return fmt.Errorf("archive: read %s/%d at %d: %w", topic, partition, at, records.Err)
		}
		for _, r := range records.Records {
			if r.Offset < to {
				if err := yield(r); err != nil {
					return err
				}
			}
		}
		switch {
		case next > at:
			at, size, empty = next, fetchBytes, 0
		case len(part.RecordBatches) > 0: // a batch is larger
			if size > math.MaxInt32/2 {
				return fmt.Errorf("archive: read %s/%d at %d: a batch is too large", topic, partition, at)
			}
			size *= 2
		case part.LastStableOffset >= to:
			if empty++; empty >= emptyFetches {
				return nil
			}
		default:
			if empty++; empty >= 2*emptyFetches {
				return fmt.Errorf("archive: read %s/%d at %d: the broker has nothing more, and records up to %d are missing: bring all replicas "+
					"up and run the same command again, which continues", topic, partition, at, to)
			}
		}
	}
	return nil
}

// fetch sends one fetch to the leader of a partition.
func (c *cluster) fetch(ctx context.Context, topic string, partition int32, at int64, size int32,
) (part *kmsg.FetchResponseTopicPartition, err error) {
	err = c.retry(ctx, "read", topic, func() (err error) {
		defer func() {
			if err != nil {
				delete(c.known, topic) // the leader may have moved
			}
		}()
		leader, id, err := c.leader(ctx, topic, partition)
		if err != nil {
			return err
		}
		req := kmsg.NewPtrFetchRequest()
		// Only the partition's size bounds the answer: if the request's own limit cuts it short, kfake leaves the aborted
		// transactions out, and their records would look committed.
		req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.IsolationLevel, req.SessionEpoch = fetchWait, 1, math.MaxInt32, 1, -1
		t := kmsg.NewFetchRequestTopic()
		t.Topic, t.TopicID = topic, id
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, at, size
		t.Partitions = append(t.Partitions, p)
		req.Topics = append(req.Topics, t)
		answer, err := c.client.Broker(int(leader)).RetriableRequest(ctx, req)
		if err != nil {
			return err
		}
		resp := answer.(*kmsg.FetchResponse)
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			return err
		}
		if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
			return errThrottled
		}
		part = &resp.Topics[0].Partitions[0]
		if resp.ThrottleMillis > 0 && len(part.RecordBatches) == 0 && part.ErrorCode == 0 {
			return errThrottled
		}
		return kerr.ErrorForCode(part.ErrorCode)
	})
	return part, err
}

// errThrottled says that a broker has answered without the partition or its records, as a quota makes it do.
var errThrottled = errors.New("the broker throttles this client")

// leader returns the broker that has a partition, and the ID of the topic.
func (c *cluster) leader(ctx context.Context, topic string, partition int32) (int32, kadm.TopicID, error) {
	d, known := c.known[topic]
	if !known {
		listed, err := c.admin.ListTopics(ctx, topic)
		if err != nil {
			return 0, kadm.TopicID{}, err
		}
		d = listed[topic]
		c.known[topic] = d
	}
	switch p, ok := d.Partitions[partition]; {
	case d.Err != nil:
		return 0, d.ID, d.Err
	case !ok:
		return 0, d.ID, kerr.UnknownTopicOrPartition
	case p.Err != nil:
		return 0, d.ID, p.Err
	default:
		return p.Leader, d.ID, nil
	}
}
