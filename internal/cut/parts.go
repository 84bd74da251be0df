package cut

import (
	"errors"
	"strings"

	"github.com/IBM/sarama"
)

var errEnded = errors.New("cut: the producer has ended")

// EmitPart sends a part of a row of the partition whose callback runs: with a value ahead of the callback's row, as an
// output is; without one behind it, and behind the row's acknowledgement. A part that is not written keeps the row from
// being written, and a row that is not written keeps the parts of the one before it. It waits for a deletion of the same
// part or of the row: a part with a number that was used before must not be found by a row before it.
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
	// Not ahead of rows of the cut before: the local store of that cut would be taken for newer than the part. Those of
	// its own cut may wait for outputs.
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

// deleteLocked puts the deletion of a part behind the row that the callback has written.
func (p *Producer) deleteLocked(r *rows, key string, msg *sarama.ProducerMessage) {
	if w := r.held[key]; w != nil {
		w.gone = append(w.gone, msg)
		return
	}
	r.put(r.deletions([]*sarama.ProducerMessage{msg}, r.call.row))
	p.advanceLocked(r)
}

// deletions go when the row in front of them is acknowledged. Handed over together, the row might be refused and they be
// written. In a transaction they have one fate.
func (r *rows) deletions(gone []*sarama.ProducerMessage, written *call) *row {
	w := &row{gone: gone, rows: r}
	if written != nil {
		w.await(written)
	}
	return w
}
