package processortest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/IBM/sarama"
)

// delivery is one record that is queued for one graph.
type delivery struct {
	to     *runner
	record *record
	marked chan struct{} // closed when Goka marks the record
}

// received queues a record that the tester delivered to a graph.
func (d *Driver) received(to *runner, topic string, offset int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.logs[topic].records[offset]; !r.held {
		d.enqueue(to, r)
	}
}

func (d *Driver) enqueue(to *runner, r *record) {
	r.delivered = d.queued
	d.queued++
	d.pending = append(d.pending, delivery{to: to, record: r, marked: make(chan struct{})})
}

// next removes and returns the pending delivery whose record was written first. Among the readers of a record it chooses
// the first one in the order of New.
func (d *Driver) next() (delivery, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.pending) == 0 {
		return delivery{}, false
	}
	first := 0
	for i := range d.pending {
		if d.before(d.pending[i], d.pending[first]) {
			first = i
		}
	}
	v := d.pending[first]
	d.pending = slices.Delete(d.pending, first, first+1)
	return v, true
}

func (d *Driver) before(a, b delivery) bool {
	if c := cmp.Compare(a.record.seq, b.record.seq); c != 0 {
		return c < 0
	}
	return slices.Index(d.runners, a.to) < slices.Index(d.runners, b.to)
}

// settle delivers records until none is pending.
func (d *Driver) settle() error {
	for {
		if err := d.collect(); err != nil {
			return err
		}
		v, ok := d.next()
		if !ok {
			return nil
		}
		if err := d.deliver(v); err != nil {
			return err
		}
	}
}

// collect makes the tester deliver its queued records, which also updates joined and looked-up tables. The tester blocks
// or panics if a processor has stopped.
func (d *Driver) collect() error {
	select {
	case <-d.stopped:
		return fmt.Errorf("processortest: %w", d.stopCause)
	default:
	}
	idle, panicked := make(chan struct{}), make(chan any, 1)
	go func() {
		defer close(idle)
		defer func() {
			if p := recover(); p != nil {
				panicked <- p
			}
		}()
		d.broker.Catchup()
	}()
	if err := d.wait(idle, "catching up"); err != nil {
		return err
	}
	select {
	case p := <-panicked:
		return fmt.Errorf("processortest: catching up: %w: %v", errStopped, p)
	default:
		return nil
	}
}

// deliver passes a record to Goka and waits until Goka marks it.
func (d *Driver) deliver(v delivery) error {
	r := v.record
	what := fmt.Sprintf("while group %s handled %s offset %d", v.to.graph.Group(), r.topic, r.offset)
	m := &sarama.ConsumerMessage{
		Topic: r.topic, Offset: r.offset, Key: []byte(r.key), Value: r.value, Timestamp: r.at,
		Headers: r.callbackHeaders().ToSaramaPtr(),
	}
	if r.nullKey {
		m.Key = nil
	}
	v.to.setCurrent(&v)
	limit := time.NewTimer(d.stepTimeout)
	defer limit.Stop()
	select {
	case v.to.claims[r.topic] <- m:
		return d.wait(v.marked, what)
	case <-d.stopped:
		return fmt.Errorf("processortest: %s: %w", what, d.stopCause)
	case <-limit.C:
		return fmt.Errorf("processortest: %s: %w", what, errBlocked)
	}
}

func (r *runner) setCurrent(v *delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = v
}

// marked is called when Goka marks a record as processed.
func (r *runner) marked(topic string, offset int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v := r.current; v != nil && v.record.topic == topic && v.record.offset == offset {
		r.current = nil
		close(v.marked)
	}
}
