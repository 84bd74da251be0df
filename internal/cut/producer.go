package cut

import (
	"fmt"
	"sync"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/callback"
)

// Producer is Goka's producer over a Sarama producer. Where Rows is ordered it puts the table row of a callback behind
// the outputs of that callback (R1): the row is sent only when they are acknowledged, in order for each partition of the
// table. State that recovery finds thus proves that its outputs are in Kafka.
type Producer struct {
	async   sarama.AsyncProducer
	table   string // topic of the group table
	lease   *Lease
	ordered bool
	failed  func(error)

	mu    sync.Mutex
	rows  map[int32]*rows
	ready []*row // may be sent: by the sender, since a full input channel would block whoever acknowledges
	wake  chan struct{}
	stop  chan struct{}
	sent  sync.WaitGroup // the sender
	acks  sync.WaitGroup
}

// rows are the callbacks and the unsent table rows of one partition.
type rows struct {
	call    *call  // whose callback runs, or ran last
	waiting []*row // in order
	sending int    // taken by the sender, not yet in Sarama's channel
	// err is why an output of this partition was not written. No row is from then on: a later one of the same key would
	// hold what the failed record did, and prove outputs that are not there.
	err error
}

// call is what is known of the outputs of one callback.
type call struct {
	pending int
}

// refuseLocked keeps the first reason for which rows are not written any more; r may be nil.
func (r *rows) refuseLocked(err error) {
	if r != nil && r.err == nil {
		r.err = err
	}
}

type row struct {
	msg  *sarama.ProducerMessage
	call *call
	rows *rows
}

// NewProducer takes async over. lease may be nil. ordered puts rows behind outputs: at least once needs it, a
// transaction does not. failed keeps the cause of a refused record, which Goka flattens to text.
func NewProducer(async sarama.AsyncProducer, table string, lease *Lease, ordered bool, failed func(error)) *Producer {
	p := &Producer{
		async: async, table: table, lease: lease, ordered: ordered, failed: failed,
		rows: map[int32]*rows{}, wake: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	p.acks.Go(p.successes)
	p.acks.Go(p.errors)
	if ordered {
		p.sent.Go(p.send)
	}
	return p
}

// Begin is called in the partition's goroutine before each callback.
func (p *Producer) Begin(partition int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.rows[partition]
	if r == nil {
		r = &rows{}
		p.rows[partition] = r
	}
	r.call = &call{}
}

// Emit implements goka.Producer.
func (p *Producer) Emit(topic, key string, value []byte) *goka.Promise {
	return p.EmitWithHeaders(topic, key, value, nil)
}

// EmitWithHeaders implements goka.Producer.
func (p *Producer) EmitWithHeaders(topic, key string, value []byte, headers goka.Headers) *goka.Promise {
	promise, finish := goka.NewPromiseWithFinisher()
	msg := &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(key), Metadata: &emitted{finish: finish}}
	if value != nil {
		msg.Value = sarama.ByteEncoder(value)
	}
	r := p.takePrivate(msg, headers)
	if !p.lease.Held() {
		p.mu.Lock()
		r.refuseLocked(ErrLease)
		p.mu.Unlock()
		p.failed(ErrLease)
		return finish(nil, ErrLease)
	}
	if !p.ordered || r == nil {
		p.async.Input() <- msg
		return promise
	}
	p.mu.Lock()
	if topic == p.table {
		direct := r.call.pending == 0 && r.err == nil && len(r.waiting) == 0 && r.sending == 0
		if !direct {
			r.waiting = append(r.waiting, &row{msg: msg, call: r.call, rows: r})
			p.advanceLocked(r)
			p.mu.Unlock()
			return promise
		}
	} else {
		r.call.pending++
		msg.Metadata = &emitted{finish: finish, call: r.call, rows: r}
	}
	p.mu.Unlock()
	p.async.Input() <- msg
	return promise
}

// EmitPart sends a part of a row of the partition whose callback runs: with a value ahead of the callback's row, as an
// output is; without one behind it. A part that is not written keeps the row from being written.
func (p *Producer) EmitPart(partition int32, key string, value []byte) error {
	if !p.lease.Held() {
		return ErrLease
	}
	msg := &sarama.ProducerMessage{Topic: p.table, Key: sarama.StringEncoder(key)}
	p.mu.Lock()
	r := p.rows[partition]
	switch {
	case value == nil && p.ordered:
		msg.Metadata = &emitted{}
		r.waiting = append(r.waiting, &row{msg: msg, call: r.call, rows: r})
		p.advanceLocked(r)
		p.mu.Unlock()
		return nil
	case value == nil:
		msg.Metadata = &emitted{}
	default:
		msg.Value = sarama.ByteEncoder(value)
		r.call.pending++
		msg.Metadata = &emitted{call: r.call, rows: r}
	}
	p.mu.Unlock()
	p.async.Input() <- msg
	return nil
}

// emitted is the metadata of a message in flight.
type emitted struct {
	finish goka.PromiseFinisher // nil for a part: Goka knows of none
	call   *call                // of an output
	rows   *rows
}

func (e *emitted) done(msg *sarama.ProducerMessage, err error) {
	if e.finish != nil {
		e.finish(msg, err)
	}
}

// takePrivate sets the headers that go to the broker and returns the partition whose callback emits, if any.
func (p *Producer) takePrivate(msg *sarama.ProducerMessage, headers goka.Headers) (r *rows) {
	for name, value := range headers {
		switch name {
		case callback.HeaderNullKey:
			msg.Key = nil
		case callback.HeaderPartition:
			p.mu.Lock()
			r = p.rows[callback.Partition(value)]
			p.mu.Unlock()
		default:
			msg.Headers = append(msg.Headers, sarama.RecordHeader{Key: []byte(name), Value: value})
		}
	}
	return r
}

// advanceLocked hands the sender what has become free to go, and fails what never will.
func (p *Producer) advanceLocked(r *rows) {
	n := 0
	for _, w := range r.waiting {
		if w.call.pending > 0 {
			break
		}
		n++
		r.sending++
		p.ready = append(p.ready, w)
	}
	if n == 0 {
		return
	}
	r.waiting = append([]*row(nil), r.waiting[n:]...)
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *Producer) send() {
	for {
		select {
		case <-p.wake:
		case <-p.stop:
			return
		}
		p.mu.Lock()
		ready := p.ready
		p.ready = nil
		p.mu.Unlock()
		for _, w := range ready {
			p.sendRow(w)
		}
	}
}

func (p *Producer) sendRow(w *row) {
	e := w.msg.Metadata.(*emitted)
	p.mu.Lock()
	refused := w.rows.err
	p.mu.Unlock()
	switch {
	case refused != nil:
		e.done(nil, fmt.Errorf("cut: table row is not written, an output before it was not: %w", refused))
	case !p.lease.Held():
		e.done(nil, ErrLease)
	default:
		p.async.Input() <- w.msg
	}
	p.mu.Lock()
	w.rows.sending--
	p.mu.Unlock()
}

// refuse fails the rows that wait when the producer closes.
func (p *Producer) refuse() {
	p.mu.Lock()
	left := p.ready
	p.ready = nil
	for _, r := range p.rows {
		left = append(left, r.waiting...)
		r.waiting = nil
	}
	p.mu.Unlock()
	for _, w := range left {
		w.msg.Metadata.(*emitted).done(nil, sarama.ErrShuttingDown)
	}
}

func (p *Producer) successes() {
	for msg := range p.async.Successes() {
		p.acknowledge(msg, nil)
	}
}

func (p *Producer) errors() {
	for e := range p.async.Errors() {
		p.acknowledge(e.Msg, e.Err)
	}
}

func (p *Producer) acknowledge(msg *sarama.ProducerMessage, err error) {
	e := msg.Metadata.(*emitted)
	if e.call != nil {
		p.mu.Lock()
		e.call.pending--
		e.rows.refuseLocked(err)
		p.advanceLocked(e.rows)
		p.mu.Unlock()
	}
	if err != nil {
		err = fmt.Errorf("cut: topic %s: %w", msg.Topic, err)
		p.failed(err)
		e.done(nil, err)
		return
	}
	e.done(msg, nil)
}

// Close waits for what was handed to Sarama; rows whose outputs are not acknowledged yet are not written.
func (p *Producer) Close() error {
	close(p.stop)
	p.sent.Wait() // nothing may meet a closed input channel
	if p.async.TxnStatus()&(sarama.ProducerTxnFlagInTransaction|sarama.ProducerTxnFlagAbortableError) != 0 {
		// Its outcome is abort or unknown, and the next producer of the same id will decide it. Aborting now frees the
		// read-committed readers at once.
		_ = p.async.AbortTxn()
	}
	p.async.AsyncClose()
	p.acks.Wait()
	p.refuse()
	return nil
}
