package processortest

import (
	"bytes"
	"strings"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/topics"
)

// Record is one record that a graph wrote.
type Record[T any] struct {
	Topic  string
	Offset int64
	Key    string
	// NullKey is true if the key is a Kafka null. Key is then empty.
	NullKey bool
	// Value is Raw as decoded by the topic's codec; the zero T for a tombstone.
	Value T
	// Raw is the bytes of the value, nil for a tombstone.
	Raw []byte
	// Headers are the record's headers, without the internal ones that the runtime removes before it sends a record.
	Headers goka.Headers
	// Timestamp is the driver's time when the record was written.
	Timestamp time.Time
}

// ID returns the record's turntable.id header, empty if it has none.
func (r Record[T]) ID() string { return string(r.Headers[topics.HeaderID]) }

// Tombstone reports whether the record's value is a Kafka null.
func (r Record[T]) Tombstone() bool { return r.Raw == nil }

// RecordOption sets a property of a record that Pipe writes.
type RecordOption func(*record)

// WithHeaders adds headers to the record.
func WithHeaders(headers goka.Headers) RecordOption {
	return func(r *record) { r.headers = r.headers.Merged(headers) }
}

// WithTimestamp sets the record's timestamp. The default is the driver's time.
func WithTimestamp(at time.Time) RecordOption {
	return func(r *record) { r.at = at }
}

// WithNullKey makes the record's key a Kafka null, which differs from the empty key. The key argument of Pipe is ignored.
func WithNullKey() RecordOption {
	return func(r *record) { r.key, r.nullKey = "", true }
}

// record is a record in a topic's log. It is immutable once it is in the log, except held and delivered.
type record struct {
	seq     int64 // position among all records of the driver
	topic   string
	offset  int64
	key     string
	nullKey bool
	value   []byte // nil for a tombstone
	headers goka.Headers
	at      time.Time
	held    bool // guarded by Driver.mu, see Driver.HoldOutputs
	// delivered is the position of its last delivery among all deliveries of the driver; guarded by Driver.mu.
	delivered int64
}

func (r *record) id() string { return string(r.headers[topics.HeaderID]) }

// topicLog contains the records of a topic.
type topicLog struct {
	records []*record // all records; the index is the offset
	outputs []*record // those that a graph wrote, without the repeats that Replay has compared
	read    int       // number of outputs that were read
	golden  int       // number of outputs that Golden has compared
}

func (l *topicLog) unread() []*record { return l.outputs[l.read:] }

// emitted returns the record that a graph emits, without internal headers and with its bytes copied.
func emitted(topic, key string, value []byte, headers goka.Headers) *record {
	r := &record{topic: topic, key: key, value: bytes.Clone(value)}
	if _, null := headers[runtimeapi.HeaderNullKey]; null {
		r.key, r.nullKey = "", true
	}
	for name, v := range headers {
		if strings.HasPrefix(name, "\x00") {
			continue
		}
		if r.headers == nil {
			r.headers = make(goka.Headers, len(headers))
		}
		r.headers[name] = bytes.Clone(v)
	}
	return r
}

// callbackHeaders returns the record's headers as a callback gets them.
func (r *record) callbackHeaders() goka.Headers {
	if !r.nullKey {
		return r.headers
	}
	return r.headers.Merged(goka.Headers{runtimeapi.HeaderNullKey: {}})
}
