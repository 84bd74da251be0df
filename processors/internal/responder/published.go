package responder

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// PartitionReader reads parts of partitions, as processors.Follower does.
type PartitionReader interface {
	OffsetAt(topic string, partition int32, since time.Time) (int64, error)
	ReplayFrom(
		ctx context.Context, topic string, partition int32, begin int64, take func(context.Context, processors.Inbound) bool,
	) (next int64, err error)
}

// ClockSkew is how far the clocks of the writers of a record and of its result may differ.
const ClockSkew = 5 * time.Minute

// rememberedNames is the largest number of names in memory for each partition. Where there are more, each call reads the
// partition.
const rememberedNames = 100_000

// Published tells whether the result of a record is on its topic already. After a crash a record is delivered again although
// its result may have been written; a paid call must not be made again then.
//
// It reads each part of a partition once and remembers the names of its records. It is safe for concurrent use; calls
// for one partition wait for each other.
type Published struct {
	reader PartitionReader
	name   func(id string) string
	limit  int

	mu         sync.Mutex
	partitions map[publishedPlace]*publishedPartition
}

type publishedPlace struct {
	topic     string
	partition int32
}

// publishedPartition is the part of a partition that has been read: the records from begin on, before next.
type publishedPartition struct {
	publishedPlace
	mu          sync.Mutex
	begin, next int64
	names       map[digests.Digest]int64 // the offset of the last record of each name
}

// NewPublished returns an index that has read nothing. It finds a record by the name that the function name makes of its
// turntable.id: the whole id or a part of it, or "" for an id that nobody looks for.
func NewPublished(r PartitionReader, name func(id string) string) *Published {
	return &Published{reader: r, name: name, limit: rememberedNames, partitions: map[publishedPlace]*publishedPartition{}}
}

// Contains reports whether a partition has a record with that name that was written at since or later, or up to
// ClockSkew before.
// It reads what it has not read yet, up to the end that the partition has now, and blocks meanwhile.
func (x *Published) Contains(ctx context.Context, topic string, n int32, name string, since time.Time) (bool, error) {
	begin, err := x.reader.OffsetAt(topic, n, since.Add(-ClockSkew))
	if err != nil {
		return false, fmt.Errorf("look for an earlier result: %w", err)
	}
	_, found, err := x.find(ctx, publishedPlace{topic, n}, name, begin)
	return found, err
}

// From returns a record with that name at the offset begin of a partition or later, like Contains.
func (x *Published) From(ctx context.Context, topic string, n int32, name string, begin int64) (r processors.Inbound, found bool, err error) {
	at, found, err := x.find(ctx, publishedPlace{topic, n}, name, begin)
	if !found || err != nil {
		return r, false, err
	}
	found = false // it may have been deleted since
	_, err = x.reader.ReplayFrom(ctx, topic, n, at, func(_ context.Context, in processors.Inbound) bool {
		r, found = in, in.Offset == at
		return false
	})
	return r, found, err
}

// find returns the offset of a record with that name at begin or later, or at an offset before that was read for another caller.
func (x *Published) find(ctx context.Context, place publishedPlace, name string, begin int64) (at int64, ok bool, err error) {
	p := x.partition(place)
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted := digestOf(name)
	if at, ok = p.names[wanted]; ok {
		return at, true, nil
	}
	switch {
	case p.next == 0 || begin > p.next: // what lies between is not needed
		p.restart(begin)
	case begin < p.begin:
		if _, err = x.read(ctx, p, begin, p.begin); err != nil {
			return 0, false, err
		}
		p.begin = begin
	}
	if p.next, err = x.read(ctx, p, p.next, math.MaxInt64); err != nil {
		p.restart(0)
		return 0, false, err
	}
	if at, ok = p.names[wanted]; ok || len(p.names) <= x.limit {
		return at, ok, nil
	}
	p.restart(0)
	return x.search(ctx, p.publishedPlace, begin, wanted)
}

func (x *Published) partition(at publishedPlace) *publishedPartition {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := x.partitions[at]
	if p == nil {
		p = &publishedPartition{publishedPlace: at}
		x.partitions[at] = p
	}
	return p
}

// restart forgets what was read.
func (p *publishedPartition) restart(begin int64) {
	p.begin, p.next, p.names = begin, begin, map[digests.Digest]int64{}
}

// read remembers the names of the records from begin on, before end, and returns the next offset. It stops early when
// there are too many.
func (x *Published) read(ctx context.Context, p *publishedPartition, begin, end int64) (next int64, err error) {
	next, err = x.reader.ReplayFrom(ctx, p.topic, p.partition, begin, func(_ context.Context, r processors.Inbound) bool {
		if r.Offset >= end {
			return false
		}
		if name := x.name(string(r.Header(topics.HeaderID))); name != "" {
			p.names[digestOf(name)] = r.Offset
		}
		return len(p.names) <= x.limit
	})
	if err != nil {
		return begin, fmt.Errorf("look for an earlier result: %w", err)
	}
	return next, nil
}

// search looks for one name only.
func (x *Published) search(
	ctx context.Context, in publishedPlace, begin int64, wanted digests.Digest,
) (at int64, found bool, err error) {
	take := func(_ context.Context, r processors.Inbound) bool {
		name := x.name(string(r.Header(topics.HeaderID)))
		at, found = r.Offset, name != "" && digestOf(name) == wanted
		return !found
	}
	if _, err := x.reader.ReplayFrom(ctx, in.topic, in.partition, begin, take); err != nil {
		return 0, false, fmt.Errorf("look for an earlier result: %w", err)
	}
	return at, found, nil
}

func digestOf(name string) digests.Digest { return digests.Of("published", name) }
