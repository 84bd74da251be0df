// Package runtimeapi defines what the runtime in internal and the input edges in processors agree on: what the context of a
// callback offers beyond Goka's, the private headers that a claim, an edge and the producer exchange, and how a row is
// split into parts. Private headers never reach the broker.
package runtimeapi

import (
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/topics"
)

// Private headers: the claim adds them, the producer removes them.
const (
	// HeaderNullKey marks a record whose key is a Kafka null (Goka makes it an empty string); on an emit it asks for a
	// null key.
	HeaderNullKey = "\x00null-key"
	// HeaderPartition names the partition whose callback emits, so that the producer can send a table row after the
	// outputs of its callback.
	HeaderPartition = "\x00partition"
	// HeaderTimestamp is the timestamp of a record that Goka itself passes to the producer.
	HeaderTimestamp = "\x00timestamp"
)

// Runtime is the context of a callback that runs under this project's runtime. As a goka.Context it is valid only during
// its callback.
type Runtime interface {
	goka.Context
	// Now is the time on the runtime's clock.
	Now() time.Time
	// Owns reports whether a key hashes to the callback's partition.
	Owns(key string) bool
	// EmitWithHeaders is Emit with headers, which may include private ones. The caller must not change them afterwards.
	EmitWithHeaders(topic goka.Stream, key string, value any, headers goka.Headers)
	// EmitWithID is Emit with an id as the only header, or without headers if id is empty.
	EmitWithID(topic goka.Stream, key string, value any, id string)
	// Part returns part n of the row of the callback's key, or nil if there is none. The caller may keep it.
	Part(n uint32) ([]byte, error)
	// Parts returns the numbers of the parts of the row of the callback's key that are stored, in no order, including those
	// that the row does not name.
	Parts() ([]uint32, error)
	// SetPart writes part n to the changelog before the row that the callback writes after it. A nil value deletes the
	// part, after the row that the callback has written. The runtime keeps value: the caller must not change it.
	SetPart(n uint32, value []byte)
}

// Retrier is implemented by a Runtime that calls failed handlers again. Its methods must be called in the goroutine of the
// callback, by a callback that has had no effects.
type Retrier interface {
	// Ended reports whether the callback must return without effects: the generation has ended while a record before it was
	// retried. The next owner of the partition handles the record.
	Ended() bool
	// HandlerFailed counts a failed attempt and returns what to do, and the number of failed attempts. For Retry it blocks
	// during the wait before the next attempt; cuts are made meanwhile.
	HandlerFailed(err error) (verdict Verdict, attempts int)
	// FailAtRecord stops the processor after a cut that ends before the record of the callback. It returns when the
	// generation has ended; the callback must then return.
	FailAtRecord(err error)
}

// Sequencer is implemented by a Runtime that can acknowledge outputs one topic after the other.
type Sequencer interface {
	// Sequence makes the callback's outputs wait for those of other topics before them: each is sent when they are
	// acknowledged. It does not block. Outputs of later callbacks with the same key are not sent before them.
	Sequence()
}

// Encoder is implemented by a Runtime that can encode a callback's effects before they are carried out.
type Encoder interface {
	// EncodeOutput returns the bytes of an output. A nil value, and one for a topic that is not an output, have none.
	EncodeOutput(topic goka.Stream, value any) ([]byte, error)
	// EncodeRow returns the bytes of the table row.
	EncodeRow(value any) ([]byte, error)
}

// Reader is implemented by a Runtime that knows how far the inputs of a callback's partition have been read.
type Reader interface {
	// Progress must be called in the callback of a deadline; in other callbacks it returns the zero Progress. It blocks for
	// 250 ms at most.
	Progress() Progress
}

// Repeater is implemented by a Runtime that knows whether a callback may run for the second time.
type Repeater interface {
	// AnswersFrom reports whether the callback may be a repeat, and from which offset on the callback's partition of an input
	// has the answers to what it sent the first time.
	AnswersFrom(input string) (from int64, repeated bool)
}

// Progress is how far the inputs of a partition have been read.
type Progress struct {
	// Through is a time on the runtime's clock: the records that were written before it have been handled. It is zero if
	// nothing is known.
	Through time.Time
	// Since is when this member began to read the partition.
	Since time.Time
}

// Verdict is what to do after a handler has failed.
type Verdict int

// The verdicts.
const (
	Fail   Verdict = iota // the runtime does not retry: stop the processor
	Retry                 // call the handler again
	GiveUp                // dead-letter the record
	Ended                 // return without effects
)

// Frozen is implemented by the codec of a group table if neither its decoded values nor the code that handles them change
// the bytes that they were decoded from. The store then does not copy a row for each callback that reads it.
type Frozen interface{ FrozenRows() }

// Large fields of a row may be stored separately in parts. Each part is a row of its own in the table, in the same
// partition, under the row's key, a NUL and the part's number. Keys of rows have no NUL.

// PartKey returns the key of part n of the row under key.
func PartKey(key string, n uint32) string { return key + "\x00" + strconv.FormatUint(uint64(n), 10) }

// PartNumber returns the number of the part of the row under key whose key is part. ok is false if it is not one.
func PartNumber(key, part string) (n uint32, ok bool) {
	digits, ok := strings.CutPrefix(part, key+"\x00")
	if !ok {
		return 0, false
	}
	number, err := strconv.ParseUint(digits, 10, 32)
	return uint32(number), err == nil
}

// IsPart reports whether a key of the table is the key of a part.
func IsPart(key string) bool { return strings.IndexByte(key, 0) >= 0 }

// Now returns the time on the runtime's clock, or the system's time under a stock goka.NewProcessor.
func Now(ctx goka.Context) time.Time {
	if r, ok := ctx.(Runtime); ok {
		return r.Now()
	}
	return time.Now()
}

// Owns reports whether a key hashes to the callback's partition. Under a stock goka.NewProcessor the number of partitions
// is not known, and Owns returns true for every key.
func Owns(ctx goka.Context, key string) bool {
	if r, ok := ctx.(Runtime); ok {
		return r.Owns(key)
	}
	return true
}

// IDHeaders returns headers with id as the only one, or nil if id is empty.
func IDHeaders(id string) goka.Headers {
	if id == "" {
		return nil
	}
	return goka.Headers{topics.HeaderID: []byte(id)}
}

// PartitionHeader encodes a partition as the value of HeaderPartition.
func PartitionHeader(partition int32) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(partition))
}

// Partition is the inverse of PartitionHeader. It returns -1 for any other value.
func Partition(header []byte) int32 {
	if len(header) != 4 {
		return -1
	}
	return int32(binary.BigEndian.Uint32(header))
}

// TimestampHeader encodes a time as the value of HeaderTimestamp, in milliseconds.
func TimestampHeader(at time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(at.UnixMilli()))
}

// Timestamp is the inverse of TimestampHeader. It returns the zero time for any other value.
func Timestamp(header []byte) time.Time {
	if len(header) != 8 {
		return time.Time{}
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(header)))
}
