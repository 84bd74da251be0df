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
	e.leaves = value == nil
	msg := &e.msg
	whole, _, _ := strings.Cut(key, "\x00")
	p.mu.Lock()
	r := p.rows[partition]
	e.rows = r
	if value == nil {
		e.batch = p.batch
		e.batch.left++
		r.leaving[key]++
		p.deleteLocked(r, whole, msg)
		p.mu.Unlock()
		return nil
	}
	for r.leaving[key] > 0 || r.leaving[whole] > 0 {
		p.releaseLocked(r)
		if r.err != nil || p.ended {
			defer p.mu.Unlock()
			return r.errOr(errEnded)
		}
		p.moved.Wait()
	}
	if r.err != nil {
		defer p.mu.Unlock()
		return r.err
	}
	r.call.pending++
	e.call, e.batch = r.call, p.batch
	e.batch.left++
	// A part must not be sent before rows of an earlier cut: the local store of that cut would count as newer than the part.
	// Rows of its own cut may still wait for outputs.
	r.parts = append(r.parts, &row{msg: msg, rows: r})
	p.advanceLocked(r)
	p.mu.Unlock()
	return nil
}

func (r *rows) errOr(err error) error {
	if r.err != nil {
		return r.err
	}
	return err
}

// deleteLocked queues the deletion of a part after the row that the callback has written.
func (p *Producer) deleteLocked(r *rows, key string, msg *sarama.ProducerMessage) {
	if w := r.held[key]; w != nil {
		w.gone = append(w.gone, msg)
		return
	}
	r.put(r.deletions([]*sarama.ProducerMessage{msg}, r.call.row))
	p.advanceLocked(r)
}

// deletions are sent when the row before them is acknowledged. If they were sent together, the row might fail while they
// are written. In a transaction they succeed or fail together.
func (r *rows) deletions(gone []*sarama.ProducerMessage, written *call) *row {
	w := &row{gone: gone, rows: r}
	if written != nil {
		w.await(written)
	}
	return w
}
