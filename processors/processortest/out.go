package processortest

import (
	"fmt"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/topics"
)

// Output reads the records that the graphs wrote to a topic, without those that the test wrote. All Outputs of a topic
// share one read position.
type Output[T any] struct {
	driver    *Driver
	topic     string
	unmarshal func([]byte) codec.Decoded[T]
}

// Out returns an Output for a topic. It fails the test if no graph writes the topic.
func Out[T any](d *Driver, t topics.Topic[T]) *Output[T] {
	d.tb.Helper()
	return out(d, t.Name(), t.Codec().Unmarshal)
}

// OutRaw returns an Output for the topic with the given name, whose values are bytes.
func OutRaw(d *Driver, topic string) *Output[[]byte] {
	d.tb.Helper()
	return out(d, topic, func(raw []byte) codec.Decoded[[]byte] { return codec.Decoded[[]byte]{Value: raw, Raw: raw} })
}

func out[T any](d *Driver, topic string, unmarshal func([]byte) codec.Decoded[T]) *Output[T] {
	d.tb.Helper()
	if !d.isWritten(topic) {
		d.fail(fmt.Errorf("processortest: no graph writes topic %s", topic))
	}
	return &Output[T]{driver: d, topic: topic, unmarshal: unmarshal}
}

// Len returns the number of unread records.
func (o *Output[T]) Len() int {
	o.driver.mu.Lock()
	defer o.driver.mu.Unlock()
	return len(o.driver.log(o.topic).unread())
}

// Next returns the next unread record. It fails the test if there is none or the topic's codec cannot decode it.
func (o *Output[T]) Next() Record[T] {
	o.driver.tb.Helper()
	records := o.read(1)
	if len(records) == 0 {
		o.driver.fail(fmt.Errorf("processortest: topic %s has no further output", o.topic))
		return Record[T]{}
	}
	return records[0]
}

// Drain returns all unread records, nil if there are none. It fails the test if the topic's codec cannot decode one.
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

// isWritten reports whether a topic is an output of any graph.
func (d *Driver) isWritten(topic string) bool {
	for _, r := range d.runners {
		if r.writes(topic) {
			return true
		}
	}
	return false
}
