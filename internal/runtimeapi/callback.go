// Package runtimeapi is what the runtime and the edge adapters agree on about a callback: what the runtime's context
// offers beyond Goka's, and the headers that travel between the claim, the adapter and the producer and never reach the
// broker.
package runtimeapi

import (
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/topics"
)

// Private headers: the claim adds them, the producer takes them off again.
const (
	// HeaderNullKey marks a record whose key is a Kafka null (Goka makes it an empty string); on an emit it asks for a
	// null key.
	HeaderNullKey = "\x00null-key"
	// HeaderPartition names the partition whose callback emits, so that the producer can put a table row behind the
	// outputs of its callback.
	HeaderPartition = "\x00partition"
)

// Runtime is the context of a callback that runs under this project's runtime.
type Runtime interface {
	goka.Context
	// Now is the time on the runtime's clock.
	Now() time.Time
	// Owns reports whether a key hashes to the callback's partition.
	Owns(key string) bool
	// EmitWithHeaders is Emit with headers, which nobody may change any more. They may be private ones.
	EmitWithHeaders(topic goka.Stream, key string, value any, headers goka.Headers)
	// EmitWithID is Emit with an id as the only header.
	EmitWithID(topic goka.Stream, key string, value any, id string)
	// Part is part n of the row of the callback's key, nil where there is none. The caller may keep it.
	Part(n uint32) ([]byte, error)
	// SetPart writes part n, which it keeps, in the changelog ahead of the row that the callback writes after it. A nil
	// value removes the part, behind the row that the callback has written.
	SetPart(n uint32, value []byte)
}

// Large fields of a row may be stored separately in parts. Each part is a row of its own in the table, in the same
// partition, under the row's key, a NUL and the part's number. Keys of rows have no NUL.

// PartKey is the key of a part.
func PartKey(key string, n uint32) string { return key + "\x00" + strconv.FormatUint(uint64(n), 10) }

// IsPart reports whether a key of the table is that of a part.
func IsPart(key string) bool { return strings.IndexByte(key, 0) >= 0 }

// Now is the time on the runtime's clock, or the system's under a stock goka.NewProcessor.
func Now(ctx goka.Context) time.Time {
	if r, ok := ctx.(Runtime); ok {
		return r.Now()
	}
	return time.Now()
}

// Owns reports whether a key hashes to the callback's partition. Under a stock goka.NewProcessor nobody knows the
// number of partitions: every key is taken for owned.
func Owns(ctx goka.Context, key string) bool {
	if r, ok := ctx.(Runtime); ok {
		return r.Owns(key)
	}
	return true
}

// IDHeaders are the headers of a record with an id and no more; an empty id is none.
func IDHeaders(id string) goka.Headers {
	if id == "" {
		return nil
	}
	return goka.Headers{topics.HeaderID: []byte(id)}
}

// PartitionHeader encodes a partition for HeaderPartition.
func PartitionHeader(partition int32) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(partition))
}

// Partition is the inverse of PartitionHeader; -1 for anything else.
func Partition(header []byte) int32 {
	if len(header) != 4 {
		return -1
	}
	return int32(binary.BigEndian.Uint32(header))
}
