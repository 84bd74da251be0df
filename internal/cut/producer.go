package cut

import (
	"fmt"
	"sync"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// Producer implements goka.Producer over a Sarama producer. Outputs are sent at once, except those of a
// sequence. The callback does not wait for its
// table row; the cut does (Seal), so that of several rows that a key gets in quick succession only the last one is sent.
// If ProducerOptions.Ordered is set, a row is sent only when the outputs of its callback are acknowledged, in order for
// each partition of the table: a row that recovery finds thus proves that its outputs are in Kafka.
type Producer struct {
	async sarama.AsyncProducer
	opts  ProducerOptions

	mu            sync.Mutex
	deletionEnded *sync.Cond // a deletion was acknowledged, or never will be
	queues        map[int32]*rowQueues
	batch         *batch     // of the cut that is open
	due           []*emitted // outputs of sequences that may be sent
	ready         []*entry   // may be sent; by the sender, since a full input channel would block the handling of acknowledgements
	wake          chan struct{}
	stop          chan struct{}
	ended         bool
	refused       bool // a record, as too large
	linger
	sender  sync.WaitGroup // the sender
	acks    sync.WaitGroup
	closing sync.Once
}

// NewProducer returns a Producer that owns async and closes it.
func NewProducer(async sarama.AsyncProducer, o ProducerOptions) *Producer {
	p := &Producer{
		async: async, opts: o,
		queues: map[int32]*rowQueues{}, batch: newBatch(0), wake: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	p.deletionEnded = sync.NewCond(&p.mu)
	p.acks.Go(p.successes)
	p.acks.Go(p.errors)
	p.sender.Go(p.send)
	return p
}

// Begin must be called in the partition's goroutine before each callback. key is the callback's.
func (p *Producer) Begin(partition int32, key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.queues[partition]
	if r == nil {
		r = newRowQueues(partition)
		p.queues[partition] = r
	}
	r.callback = &barrier{}
	r.sequence = r.sequences[key]
}

// Emit implements goka.Producer.
func (p *Producer) Emit(topic, key string, value []byte) *goka.Promise {
	return p.EmitWithHeaders(topic, key, value, nil)
}

// EmitWithHeaders implements goka.Producer. The promise of a table row is resolved at once; the cut waits for the row.
func (p *Producer) EmitWithHeaders(topic, key string, value []byte, headers goka.Headers) *goka.Promise {
	promise, finish := goka.NewPromiseWithFinisher()
	partition := runtimeapi.Partition(headers[runtimeapi.HeaderPartition])
	if topic == p.opts.Table && p.runs(partition) {
		return finish(nil, p.EmitRow(partition, key, value, headers))
	}
	e := newEmitted(topic, key, value).with(headers)
	e.waiter = promised(func(err error) { finish(nil, err) })
	p.emitOutput(partition, e)
	return promise
}

// promised resolves a promise.
type promised func(error)

func (p promised) acknowledged(_ string, err error) { p(err) }

// emitOutput sends an output of the callback that runs on a partition, if one runs. e.waiter is notified of the outcome.
func (p *Producer) emitOutput(partition int32, e *emitted) {
	if err := p.mayEmit(partition); err != nil {
		e.waiter.acknowledged(e.msg.Topic, err)
		return
	}
	p.fit(&e.msg)
	p.mu.Lock()
	r := p.queues[partition]
	if r != nil && p.opts.Ordered {
		r.callback.pending++
		e.barrier, e.queues = r.callback, r
	}
	if r == nil || r.sequence == nil {
		p.mu.Unlock()
		p.async.Input() <- &e.msg
		return
	}
	err := p.sequenceLocked(r.sequence, e)
	p.mu.Unlock()
	if err != nil {
		p.acknowledge(&e.msg, err)
	}
}

// EmitRow queues the table row of the callback that runs on a partition; a nil value deletes the row. It returns ErrLease
// if the lease is not held.
func (p *Producer) EmitRow(partition int32, key string, value []byte, headers goka.Headers) error {
	if err := p.mayEmit(partition); err != nil {
		return err
	}
	e := newEmitted(p.opts.Table, key, value).with(headers)
	p.fit(&e.msg)
	p.emitRow(partition, e)
	return nil
}

// learn learns from a refused record, if it is the first one: Sarama fails the other records of a transaction with the same error.
func (p *Producer) learn(m *sarama.ProducerMessage, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opts.Limits != nil && !p.refused {
		p.refused = p.opts.Limits.Refused(m, err)
	}
}

func (p *Producer) fit(m *sarama.ProducerMessage) {
	if p.opts.Limits != nil {
		p.opts.Limits.Fit(m)
	}
}

// runs reports whether callbacks have run on a partition.
func (p *Producer) runs(partition int32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queues[partition] != nil
}

// mayEmit returns ErrLease if the lease is not held; no row of the partition is written after that.
func (p *Producer) mayEmit(partition int32) error {
	if p.opts.Lease.Held() {
		return nil
	}
	p.mu.Lock()
	p.stopRowsLocked(p.queues[partition], ErrLease)
	p.mu.Unlock()
	p.opts.Failed(ErrLease)
	return ErrLease
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
		p.learn(msg, err)
		err = fmt.Errorf("cut: topic %s: %w", msg.Topic, final(err))
		p.opts.Failed(err)
	}
	var unsent []*emitted
	if e.queues != nil || e.sequence != nil {
		p.mu.Lock()
	}
	if e.queues != nil {
		if e.batch != nil && err == nil && p.opts.Stored != nil { // no cut may be made in between
			// The local store seals the rows of a transaction when it is committed, that is, after their acknowledgements.
			err = p.opts.Stored(e.queues.partition, msg.Offset, e.batch.sealed && p.opts.Ordered)
		}
		if e.barrier != nil {
			e.barrier.pending--
		}
		if err != nil {
			p.stopRowsLocked(e.queues, err)
		}
		if e.batch != nil {
			p.settleLocked(e, err)
		}
		p.advanceLocked(e.queues)
	}
	if e.sequence != nil {
		unsent = p.acknowledgedLocked(e.sequence, err)
	}
	if e.queues != nil || e.sequence != nil {
		p.mu.Unlock()
	}
	switch {
	case e.waiter != nil:
		e.waiter.acknowledged(msg.Topic, err)
	case err != nil:
		p.opts.Broken(err)
	}
	for _, e := range unsent {
		p.acknowledge(&e.msg, fmt.Errorf("not sent, because an output before it failed: %w", err))
	}
}

// Close blocks until Sarama has sent or failed everything that was handed to it. Rows whose outputs are not acknowledged
// are not written; an open transaction is aborted. Close may be called more than once and always returns nil.
func (p *Producer) Close() error {
	p.closing.Do(p.close)
	return nil
}

func (p *Producer) close() {
	close(p.stop)
	p.sender.Wait() // nothing may be sent to a closed input channel
	p.mu.Lock()
	p.ended = true
	p.disarm()
	p.deletionEnded.Broadcast()
	p.mu.Unlock()
	if p.async.TxnStatus()&(sarama.ProducerTxnFlagInTransaction|sarama.ProducerTxnFlagAbortableError) != 0 {
		// Its outcome is abort or unknown, and the next producer of the same id decides it. Aborting it now unblocks
		// read-committed readers at once.
		_ = p.async.AbortTxn()
	}
	p.async.AsyncClose()
	p.acks.Wait()
	p.failUnsent()
	p.failSequences()
}
