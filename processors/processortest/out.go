package processortest

import (
	"fmt"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/topics"
)

// Output reads what the graphs wrote to a topic; what was piped into it is not there. All outputs of a topic share one
// position.
type Output[T any] struct {
	driver    *Driver
	topic     string
	unmarshal func([]byte) codec.Decoded[T]
}

// Out returns the way out of a topic. A topic that no graph writes fails the test.
func Out[T any](d *Driver, t topics.Topic[T]) *Output[T] {
	d.tb.Helper()
	return out(d, t.Name(), t.Codec().Unmarshal)
}

// OutRaw returns the way out of a topic by its name; its values are bytes.
func OutRaw(d *Driver, topic string) *Output[[]byte] {
	d.tb.Helper()
	return out(d, topic, func(raw []byte) codec.Decoded[[]byte] { return codec.Decoded[[]byte]{Value: raw, Raw: raw} })
}

func out[T any](d *Driver, topic string, unmarshal func([]byte) codec.Decoded[T]) *Output[T] {
	d.tb.Helper()
	if !d.written(topic) {
		d.fail(fmt.Errorf("processortest: no graph writes topic %s", topic))
	}
	return &Output[T]{driver: d, topic: topic, unmarshal: unmarshal}
}

// Len is the number of records that were not read.
func (o *Output[T]) Len() int {
	o.driver.mu.Lock()
	defer o.driver.mu.Unlock()
	return len(o.driver.log(o.topic).unread())
}

// Next reads the next record. It fails the test where there is none, or where the topic's codec cannot read it.
func (o *Output[T]) Next() Record[T] {
	o.driver.tb.Helper()
	records := o.read(1)
	if len(records) == 0 {
		o.driver.fail(fmt.Errorf("processortest: topic %s has no further output", o.topic))
		return Record[T]{}
	}
	return records[0]
}

// Drain reads all records that were not read, none if there are none. It fails the test where the topic's codec cannot
// read one.
func (o *Output[T]) Drain() []Record[T] {
	o.driver.tb.Helper()
	return o.read(o.Len())
}

func (o *Output[T]) read(n int) []Record[T] {
	o.driver.tb.Helper()
	o.driver.mu.Lock()
	l := o.driver.log(o.topic)
	unread := l.unread()
	unread = unread[:min(n, len(unread))]
	l.read += len(unread)
	o.driver.mu.Unlock()

	var records []Record[T]
	for _, r := range unread {
		decoded := o.unmarshal(r.value)
		if decoded.Err != nil {
			o.driver.fail(fmt.Errorf("processortest: topic %s offset %d: %w", r.topic, r.offset, decoded.Err))
			return nil
		}
		records = append(records, Record[T]{
			Topic: r.topic, Offset: r.offset, Key: r.key, NullKey: r.nullKey,
			Value: decoded.Value, Raw: r.value, Headers: r.headers, Timestamp: r.at,
		})
	}
	return records
}

// written reports whether a topic is an output of any graph.
func (d *Driver) written(topic string) bool {
	for _, r := range d.runners {
		if r.writes(topic) {
			return true
		}
	}
	return false
}
