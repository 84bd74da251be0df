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
	// NullKey is true where the key is a Kafka null; Key is empty then.
	NullKey bool
	// Value is what the topic's codec reads from Raw; the zero T for a tombstone.
	Value T
	// Raw is the bytes of the value, nil for a tombstone.
	Raw []byte
	// Headers are those of the record, without what the runtime takes off before the broker.
	Headers goka.Headers
	// Timestamp is the driver's time when the record was written.
	Timestamp time.Time
}

// ID is the record's turntable.id header, empty where it has none.
func (r Record[T]) ID() string { return string(r.Headers[topics.HeaderID]) }

// Tombstone reports whether the record's value is a Kafka null.
func (r Record[T]) Tombstone() bool { return r.Raw == nil }

// RecordOption sets what Pipe does not say about a record.
type RecordOption func(*record)

// WithHeaders adds headers to the record.
func WithHeaders(headers goka.Headers) RecordOption {
	return func(r *record) { r.headers = r.headers.Merged(headers) }
}

// WithTimestamp sets the record's timestamp; without it the record has the driver's time.
func WithTimestamp(at time.Time) RecordOption {
	return func(r *record) { r.at = at }
}

// WithNullKey makes the record's key a Kafka null, which is not the empty key.
func WithNullKey() RecordOption {
	return func(r *record) { r.key, r.nullKey = "", true }
}

// record is a record of a topic as a broker would keep it. It does not change once it is in a topic's log.
type record struct {
	seq     int64 // among all records of the driver
	topic   string
	offset  int64
	key     string
	nullKey bool
	value   []byte // nil for a tombstone
	headers goka.Headers
	at      time.Time
}

func (r *record) id() string { return string(r.headers[topics.HeaderID]) }

// topicLog is what was written to a topic.
type topicLog struct {
	records []*record // the index is the offset
	outputs []*record // those that a graph wrote, but for repeats that Replay has compared
	read    int       // outputs read so far
	golden  int       // outputs that Golden has seen
}

func (l *topicLog) unread() []*record { return l.outputs[l.read:] }

// emitted is the record that a graph asks for: private headers taken off, bytes copied.
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

// delivered is the record's headers as a callback gets them.
func (r *record) delivered() goka.Headers {
	if !r.nullKey {
		return r.headers
	}
	return r.headers.Merged(goka.Headers{runtimeapi.HeaderNullKey: {}})
}
