package processortest

import (
	"fmt"
	"slices"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// producer is the producer of Goka. It appends every record to the driver's log and the tester's queue.
type producer struct{ runner *runner }

func (p *producer) Emit(topic, key string, value []byte) *goka.Promise {
	return p.EmitWithHeaders(topic, key, value, nil)
}

func (p *producer) EmitWithHeaders(topic, key string, value []byte, headers goka.Headers) *goka.Promise {
	d := p.runner.driver
	r := emitted(topic, key, value, headers)
	d.mu.Lock()
	defer d.mu.Unlock()
	r.at = d.now
	output := p.runner.writes(topic)
	r.held = output && d.hold
	promise := d.append(r)
	if output {
		l := d.log(topic)
		l.outputs = append(l.outputs, r)
		d.validate(r)
	}
	return promise
}

// validate reports a record that is not as its topic requires.
func (d *Driver) validate(r *record) {
	if runtimeapi.Written == nil {
		return
	}
	if err := runtimeapi.Written(r.topic, r.value); err != nil {
		d.tb.Errorf("processortest: %v", err)
	}
}

func (p *producer) Close() error { return nil }

// writes reports whether a topic is an output of the graph; its table and its loop topic are not.
func (r *runner) writes(topic string) bool {
	return slices.Contains(r.graph.OutputStreams().Topics(), topic)
}

// append appends a record to its topic.
func (d *Driver) append(r *record) *goka.Promise {
	l := d.log(r.topic)
	promise := d.producer.EmitWithHeaders(r.topic, r.key, r.value, r.headers)
	promise.ThenWithMessage(func(m *sarama.ProducerMessage, _ error) { r.offset = m.Offset })
	r.seq = d.seq
	d.seq++
	l.records = append(l.records, r)
	return promise
}

// pipe writes a record to an input topic and delivers records until none is pending.
func (d *Driver) pipe(r *record) error {
	if !d.isRead(r.topic) {
		return fmt.Errorf("processortest: no graph reads topic %s", r.topic)
	}
	d.mu.Lock()
	d.append(r)
	d.mu.Unlock()
	return d.settle()
}

// redeliver delivers a record of the log to its readers again.
func (d *Driver) redeliver(topic string, offset int64) error {
	d.mu.Lock()
	l := d.log(topic)
	if offset < 0 || offset >= int64(len(l.records)) {
		d.mu.Unlock()
		return fmt.Errorf("processortest: topic %s has no offset %d", topic, offset)
	}
	l.records[offset].held = false
	for _, r := range d.readers(topic) {
		d.enqueue(r, l.records[offset])
	}
	d.mu.Unlock()
	return d.settle()
}

// isRead reports whether any graph reads a topic, as an input or as a table.
func (d *Driver) isRead(topic string) bool {
	return slices.ContainsFunc(d.runners, func(r *runner) bool {
		_, input := r.claims[topic]
		return input || r.tables[topic]
	})
}
