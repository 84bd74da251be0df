package processortest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/IBM/sarama"
)

// delivery is one record on its way to one graph.
type delivery struct {
	to     *runner
	record *record
	done   chan struct{} // closed by the mark
}

// arrived takes note of a record that the tester handed to a graph.
func (d *Driver) arrived(to *runner, topic string, offset int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.enqueue(to, d.logs[topic].records[offset])
}

func (d *Driver) enqueue(to *runner, r *record) {
	d.pending = append(d.pending, delivery{to: to, record: r, done: make(chan struct{})})
}

// next takes the record that was written first, and of its readers the first one given to New.
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

// settle works until no graph has a record left.
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

// collect makes the tester hand over what is in its queues; joined and looked-up tables catch up by it. The tester
// hangs or panics where a processor is gone.
func (d *Driver) collect() error {
	select {
	case <-d.dead:
		return fmt.Errorf("processortest: %w", d.death)
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

// deliver hands a record to Goka and returns when it is done with.
func (d *Driver) deliver(v delivery) error {
	r := v.record
	what := fmt.Sprintf("while group %s handled %s offset %d", v.to.graph.Group(), r.topic, r.offset)
	m := &sarama.ConsumerMessage{
		Topic: r.topic, Offset: r.offset, Key: []byte(r.key), Value: r.value, Timestamp: r.at,
		Headers: r.delivered().ToSaramaPtr(),
	}
	if r.nullKey {
		m.Key = nil
	}
	v.to.work(&v)
	limit := time.NewTimer(d.patience)
	defer limit.Stop()
	select {
	case v.to.claims[r.topic] <- m:
		return d.wait(v.done, what)
	case <-d.dead:
		return fmt.Errorf("processortest: %s: %w", what, d.death)
	case <-limit.C:
		return fmt.Errorf("processortest: %s: %w", what, errBlocked)
	}
}

func (r *runner) work(v *delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handed = v
}

// marked is Goka's word that a record is done with.
func (r *runner) marked(topic string, offset int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v := r.handed; v != nil && v.record.topic == topic && v.record.offset == offset {
		r.handed = nil
		close(v.done)
	}
}
