package cut

import (
	"fmt"
	"sync"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/callback"
	"github.com/turntable-streams/turntable/topics"
)

// Producer is Goka's producer over a Sarama producer. Outputs go at once. Table rows are not waited for by the callback
// that writes them but by the cut (Seal), so that of the rows that a key gets in quick succession only the last one is
// sent; and where Ordered is set, a row goes only when the outputs of its callback are acknowledged, in order for each
// partition of the table (R1): state that recovery finds thus proves that its outputs are in Kafka.
type Producer struct {
	async sarama.AsyncProducer
	opts  ProducerOptions

	mu    sync.Mutex
	moved *sync.Cond // a deletion was acknowledged, or never will be
	rows  map[int32]*rows
	batch *batch // of the cut that is open
	ready []*row // may be sent: by the sender, since a full input channel would block whoever acknowledges
	wake  chan struct{}
	stop  chan struct{}
	ended bool
	linger
	sent sync.WaitGroup // the sender
	acks sync.WaitGroup
}

// NewProducer takes async over.
func NewProducer(async sarama.AsyncProducer, o ProducerOptions) *Producer {
	p := &Producer{
		async: async, opts: o,
		rows: map[int32]*rows{}, batch: newBatch(), wake: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	p.moved = sync.NewCond(&p.mu)
	p.acks.Go(p.successes)
	p.acks.Go(p.errors)
	p.sent.Go(p.send)
	return p
}

// Begin is called in the partition's goroutine before each callback.
func (p *Producer) Begin(partition int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.rows[partition]
	if r == nil {
		r = newRows(partition)
		p.rows[partition] = r
	}
	r.call = &call{}
}

// Emit implements goka.Producer.
func (p *Producer) Emit(topic, key string, value []byte) *goka.Promise {
	return p.EmitWithHeaders(topic, key, value, nil)
}

// EmitWithHeaders implements goka.Producer. The promise of a row of the table is kept at once.
func (p *Producer) EmitWithHeaders(topic, key string, value []byte, headers goka.Headers) *goka.Promise {
	msg := newMessage(topic, key, value)
	e := msg.Metadata.(*emitted)
	r := p.takePrivate(msg, headers)
	if !p.opts.Lease.Held() {
		p.mu.Lock()
		p.refuseLocked(r, ErrLease)
		p.mu.Unlock()
		p.opts.Failed(ErrLease)
		return finished(ErrLease)
	}
	if r != nil && topic == p.opts.Table {
		p.emitRow(r, key, msg)
		return r.kept
	}
	promise, finish := goka.NewPromiseWithFinisher()
	e.finish = finish
	if r != nil && p.opts.Ordered {
		p.mu.Lock()
		r.call.pending++
		e.call, e.rows = r.call, r
		p.mu.Unlock()
	}
	p.async.Input() <- msg
	return promise
}

func finished(err error) *goka.Promise {
	promise, finish := goka.NewPromiseWithFinisher()
	finish(nil, err)
	return promise
}

// newMessage makes a record and what is known of it, in one piece.
func newMessage(topic, key string, value []byte) *sarama.ProducerMessage {
	m := &struct {
		sarama.ProducerMessage
		emitted
	}{}
	m.emitted.key = key
	m.Topic, m.Key, m.Metadata = topic, sarama.StringEncoder(key), &m.emitted
	if value != nil {
		m.Value = sarama.ByteEncoder(value)
	}
	return &m.ProducerMessage
}

// emitted is the metadata of a message in flight.
type emitted struct {
	finish goka.PromiseFinisher // nil for rows and parts
	key    string
	call   *call // counts it: of what a row waits for, or of a row, for the deletions behind it
	rows   *rows
	batch  *batch // of rows and parts
	// leaves is set for a deletion of a row or a part.
	leaves bool
}

// headerID is the name of the header that nearly all outputs have.
var headerID = []byte(topics.HeaderID)

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
		case topics.HeaderID:
			msg.Headers = append(msg.Headers, sarama.RecordHeader{Key: headerID, Value: value})
		default:
			msg.Headers = append(msg.Headers, sarama.RecordHeader{Key: []byte(name), Value: value})
		}
	}
	return r
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
	if err != nil {
		err = fmt.Errorf("cut: topic %s: %w", msg.Topic, err)
		p.opts.Failed(err)
	}
	if e.rows != nil {
		p.mu.Lock()
		if e.batch != nil && err == nil && p.opts.Stored != nil { // no cut may be made in between
			err = p.opts.Stored(e.rows.partition, msg.Offset, e.batch.sealed)
		}
		if e.call != nil {
			e.call.pending--
		}
		if err != nil {
			p.refuseLocked(e.rows, err)
		}
		if e.batch != nil {
			p.settleLocked(e, err)
		}
		p.advanceLocked(e.rows)
		p.mu.Unlock()
	}
	switch {
	case e.finish == nil && err != nil:
		p.opts.Broken(err)
	case e.finish != nil && err != nil:
		e.finish(nil, err)
	case e.finish != nil:
		e.finish(msg, nil)
	}
}

// Close waits for what was handed to Sarama; rows whose outputs are not acknowledged yet are not written.
func (p *Producer) Close() error {
	close(p.stop)
	p.sent.Wait() // nothing may meet a closed input channel
	p.mu.Lock()
	p.ended = true
	p.disarm()
	p.moved.Broadcast()
	p.mu.Unlock()
	if p.async.TxnStatus()&(sarama.ProducerTxnFlagInTransaction|sarama.ProducerTxnFlagAbortableError) != 0 {
		// Its outcome is abort or unknown, and the next producer of the same id will decide it. Aborting now frees the
		// read-committed readers at once.
		_ = p.async.AbortTxn()
	}
	p.async.AsyncClose()
	p.acks.Wait()
	p.abandon()
	return nil
}
