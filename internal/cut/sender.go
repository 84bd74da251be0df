package cut

import (
	"fmt"

	"github.com/IBM/sarama"
)

// send sends what the queues have released, until the producer closes. It is a goroutine of its own because Sarama's input
// channel blocks while it is full, and the goroutines that release entries must not.
func (p *Producer) send() {
	for {
		select {
		case <-p.wake:
		case <-p.stop:
			return
		}
		p.mu.Lock()
		ready, due := p.ready, p.due
		p.ready, p.due = nil, nil
		p.mu.Unlock()
		for _, e := range due {
			p.sendDue(e)
		}
		for _, w := range ready {
			p.sendEntry(w)
		}
	}
}

// sendEntry sends an entry, or fails it if no row of its partition may be written any more.
func (p *Producer) sendEntry(w *entry) {
	p.mu.Lock()
	err := w.queues.err
	p.mu.Unlock()
	switch {
	case err != nil:
		err = fmt.Errorf("cut: table row is not written: an earlier output or row of its partition failed: %w", err)
	case !p.opts.Lease.Held():
		err = ErrLease
	default:
		if w.msg != nil {
			p.async.Input() <- w.msg
		}
		for _, msg := range w.deletions {
			p.async.Input() <- msg
		}
	}
	p.mu.Lock()
	if err != nil {
		p.stopRowsLocked(w.queues, err)
		p.failLocked(w, err)
		p.advanceLocked(w.queues) // the entries that wait for it fail too
	}
	w.msg, w.deletions = nil, nil // later entries may wait for w after it was sent: release the messages
	p.mu.Unlock()
	if err != nil {
		p.opts.Failed(err)
		p.opts.Broken(err)
	}
}

// failLocked counts everything of an entry as failed in its cut.
func (p *Producer) failLocked(w *entry, err error) {
	if w.msg != nil {
		e := w.msg.Metadata.(*emitted)
		if e.barrier != nil {
			e.barrier.pending--
		}
		p.settleLocked(e, err)
	}
	for _, msg := range w.deletions {
		p.settleLocked(msg.Metadata.(*emitted), err)
	}
}

// failUnsent fails the cuts whose rows were not written when the producer closed.
func (p *Producer) failUnsent() {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.ready
	p.ready = nil
	for _, r := range p.queues {
		left = append(left, r.parts...)
		left = append(left, r.rows...)
		left = append(left, r.deletions...)
		left = append(left, r.order...)
		r.parts, r.rows, r.deletions, r.order = nil, nil, nil, nil
		clear(r.held)
	}
	for _, w := range left {
		p.failLocked(w, sarama.ErrShuttingDown)
	}
}
