package share

import (
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/processors"
)

// acquired is a record of a fetch that the broker has locked for this process.
type acquired struct {
	record processors.Inbound
	count  int // of deliveries, this one included
}

// decode returns the acquired records of a partition, and the acquired offsets that have no record: transaction markers and
// compacted records. Batches contain records that were not acquired; they are skipped. If a batch cannot be decoded, err
// says so and the offsets without a record may be those of the batch.
func decode(topic string, in *kmsg.ShareFetchResponseTopicPartition) (records []acquired, empty []int64, err error) {
	fetched := kmsg.NewFetchResponseTopicPartition()
	fetched.Partition, fetched.RecordBatches = in.Partition, in.Records
	part, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Topic: topic, Partition: in.Partition},
		&fetched, kgo.DefaultDecompressor(), nil)
	byOffset := make(map[int64]*kgo.Record, len(part.Records))
	for _, r := range part.Records {
		byOffset[r.Offset] = r
	}
	for _, a := range in.AcquiredRecords {
		for offset := a.FirstOffset; offset <= a.LastOffset; offset++ {
			if r, ok := byOffset[offset]; ok {
				records = append(records, acquired{inbound(r), max(int(a.DeliveryCount), 1)})
			} else {
				empty = append(empty, offset)
			}
		}
	}
	return records, empty, part.Err
}

func inbound(r *kgo.Record) processors.Inbound {
	in := processors.Inbound{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp, Key: r.Key, Value: r.Value,
	}
	if len(r.Headers) > 0 {
		in.Headers = make([]processors.Header, len(r.Headers))
		for i, h := range r.Headers {
			in.Headers[i] = processors.Header{Name: h.Key, Value: h.Value}
		}
	}
	return in
}
