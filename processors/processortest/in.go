package processortest

import (
	"bytes"
	"fmt"

	"github.com/turntable-streams/turntable/topics"
)

// Input writes records to a topic that a graph reads. Each of its methods blocks until every graph is idle.
type Input[T any] struct {
	driver  *Driver
	topic   string
	marshal func(T) ([]byte, error)
}

// In returns an Input for a topic. Writing to a topic that no graph reads fails the test.
func In[T any](d *Driver, t topics.Topic[T]) *Input[T] {
	return &Input[T]{driver: d, topic: t.Name(), marshal: t.Codec().Marshal}
}

// InRaw returns an Input for the topic with the given name, whose values are bytes.
func InRaw(d *Driver, topic string) *Input[[]byte] {
	return &Input[[]byte]{driver: d, topic: topic, marshal: func(raw []byte) ([]byte, error) { return raw, nil }}
}

// Pipe writes one value and returns the record's offset. Its timestamp is the driver's time.
func (in *Input[T]) Pipe(key string, value T, opts ...RecordOption) int64 {
	in.driver.tb.Helper()
	raw, err := in.marshal(value)
	if err != nil {
		in.driver.fail(fmt.Errorf("processortest: encode for topic %s: %w", in.topic, err))
		return -1
	}
	return in.PipeRaw(key, raw, opts...)
}

// PipeRaw writes bytes, which need not be valid for the topic's codec, and returns the record's offset. Nil is a tombstone,
// a zero-length slice is not. The bytes are copied.
func (in *Input[T]) PipeRaw(key string, raw []byte, opts ...RecordOption) int64 {
	in.driver.tb.Helper()
	r := &record{topic: in.topic, key: key, value: bytes.Clone(raw), at: in.driver.Now()}
	for _, opt := range opts {
		opt(r)
	}
	if err := in.driver.pipe(r); err != nil {
		in.driver.fail(err)
		return -1
	}
	return r.offset
}

// PipeAt redelivers the record at an offset, with the same bytes, headers and timestamp, to every graph that reads the
// topic.
func (in *Input[T]) PipeAt(offset int64) {
	in.driver.tb.Helper()
	if err := in.driver.redeliver(in.topic, offset); err != nil {
		in.driver.fail(err)
	}
}
