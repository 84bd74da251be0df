package cut

import (
	"errors"
	"strings"

	"github.com/IBM/sarama"
)

var errEnded = errors.New("cut: the producer has ended")

// EmitPart sends a part of a row of the partition whose callback runs. A part with a value is sent before the callback's
// row, as an output is; a deletion (nil) is sent after the row is acknowledged. If a part cannot be written, the row is
// not written; if a row is not written, the parts of the row before it are not deleted. EmitPart blocks while a deletion
// of the same part or of the row is in flight: an earlier row must not find a new part under a number that it names.
func (p *Producer) EmitPart(partition int32, key string, value []byte) error {
	if !p.opts.Lease.Held() {
		return ErrLease
	}
	e := newEmitted(p.opts.Table, key, value)
	p.fit(&e.msg)
	e.deletes = value == nil
	msg := &e.msg
	whole, _, _ := strings.Cut(key, "\x00")
	p.mu.Lock()
	r := p.queues[partition]
	e.queues = r
	if value == nil {
		e.batch = p.batch
		e.batch.left++
		r.deleting[key]++
		p.deleteLocked(r, whole, msg)
		p.mu.Unlock()
		return nil
	}
	for r.deleting[key] > 0 || r.deleting[whole] > 0 {
		p.releaseLocked(r)
		if r.err != nil || p.ended {
			defer p.mu.Unlock()
			return r.errOr(errEnded)
		}
		p.deletionEnded.Wait()
	}
	if r.err != nil {
		defer p.mu.Unlock()
		return r.err
	}
	r.callback.pending++
	e.barrier, e.batch = r.callback, p.batch
	e.batch.left++
	// A part must not be sent before rows of an earlier cut: the local store of that cut would count as newer than the part.
	// Rows of its own cut may still wait for outputs.
	r.parts = append(r.parts, &entry{msg: msg, queues: r})
	p.advanceLocked(r)
	p.mu.Unlock()
	return nil
}

func (r *rowQueues) errOr(err error) error {
	if r.err != nil {
		return r.err
	}
	return err
}

// deleteLocked queues the deletion of a part after the row that the callback has written.
func (p *Producer) deleteLocked(r *rowQueues, key string, msg *sarama.ProducerMessage) {
	if w := r.held[key]; w != nil {
		w.deletions = append(w.deletions, msg)
		return
	}
	r.queueDeletions(r.newDeletions([]*sarama.ProducerMessage{msg}, r.callback.row))
	p.advanceLocked(r)
}

// newDeletions returns an entry with deletions of parts. They wait until the row that the callback has written is
// acknowledged: if they were sent together, the row might fail while they are written. In a transaction written is nil,
// since they succeed or fail together.
func (r *rowQueues) newDeletions(parts []*sarama.ProducerMessage, written *barrier) *entry {
	w := &entry{deletions: parts, queues: r}
	if written != nil {
		w.waitFor(written)
	}
	return w
}
