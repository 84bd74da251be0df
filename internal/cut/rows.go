package cut

import (
	"fmt"
	"slices"

	"github.com/IBM/sarama"
)

// rows are the callbacks and the unsent table rows of one partition.
//
// A row is held, and replaced by newer rows of its key, until the linger has passed or the cut is made. A linger period
// therefore costs one batch of rows, with one row per session. Holding rows also keeps them from delaying later outputs:
// only one request is in flight, and outputs would wait for the answer to the row's request.
type rows struct {
	partition int32
	call      *call           // of the callback that runs, or ran last
	held      map[string]*row // by key
	order     []*row          // the held ones
	parts     []*row          // parts that wait for rows of earlier cuts, in order
	waiting   []*row          // rows that wait for outputs and parts, in order
	behind    []*row          // deletions that wait for the rows before them, in order
	// leaving counts the deletions of a key that are not acknowledged. Nothing that is sent before rows may overtake them.
	leaving map[string]int
	// err is why an output of this partition was not written. No row is written after that: a later row of the same key
	// would hold the effects of the failed record, and prove outputs that are not in Kafka.
	err error
}

// call counts the unacknowledged outputs of one callback and parts of its row; or it stands for a row that was sent.
type call struct {
	pending int
	row     *call // the row that the callback has written, for which deletions of parts wait; nil: they do not wait
}

// row is an unsent row of the table, an unsent part, or deletions of parts of a row that was sent.
type row struct {
	msg  *sarama.ProducerMessage   // nil for deletions alone
	gone []*sarama.ProducerMessage // deletions of its parts, sent after it: earlier rows in the changelog name the parts
	// calls are the callbacks whose effects the row holds: its own, and those whose rows it has replaced.
	calls []*call
	few   [2]*call // the array of calls, large enough for most rows
	sent  call     // stands for the row itself; deletions after it wait for this
	rows  *rows
}

func (w *row) await(c *call) {
	if w.calls == nil {
		w.calls = w.few[:0]
	}
	w.calls = append(w.calls, c)
}

// free reports whether the outputs of its callbacks are acknowledged.
func (w *row) free() bool {
	w.calls = slices.DeleteFunc(w.calls, func(c *call) bool { return c.pending == 0 })
	return len(w.calls) == 0
}

func newRows(partition int32) *rows {
	return &rows{partition: partition, held: map[string]*row{}, leaving: map[string]int{}}
}

// cut returns the number of the cut that a row belongs to.
func (w *row) cut() int64 {
	msg := w.msg
	if msg == nil {
		msg = w.gone[0]
	}
	return msg.Metadata.(*emitted).batch.cut
}

// releaseLocked queues the held rows; they are sent when their outputs are acknowledged.
func (p *Producer) releaseLocked(r *rows) {
	if len(r.order) == 0 {
		return
	}
	for _, w := range r.order {
		r.queue(w)
	}
	clear(r.held)
	clear(r.order)
	r.order = r.order[:0]
	p.advanceLocked(r)
}

// queue appends a row to the waiting rows, and the deletions of its parts after it.
func (r *rows) queue(w *row) {
	r.waiting = append(r.waiting, w)
	if len(w.gone) > 0 {
		r.put(r.deletions(w.gone, w.msg.Metadata.(*emitted).call))
		w.gone = nil
	}
}

// put queues deletions. Those that wait for no row keep their place among the rows, after the parts of their cut.
func (r *rows) put(w *row) {
	if len(w.calls) == 0 {
		r.waiting = append(r.waiting, w)
		return
	}
	r.behind = append(r.behind, w)
}

func (p *Producer) emitRow(partition int32, e *emitted) {
	p.mu.Lock()
	r, key, msg := p.rows[partition], e.key, &e.msg
	e.rows, e.leaves = r, msg.Value == nil
	if e.leaves {
		r.leaving[key]++
	}
	w := r.held[key]
	if w != nil { // the held row is replaced and not sent
		replaced := w.msg.Metadata.(*emitted)
		e.batch = replaced.batch
		p.leftLocked(replaced)
	} else {
		w = &row{rows: r}
		e.batch = p.batch
		e.batch.left++
		r.held[key] = w
		r.order = append(r.order, w)
		p.armLocked()
	}
	w.msg = msg
	w.await(r.call)
	if p.opts.Ordered {
		w.sent.pending = 1
		e.call = &w.sent
	}
	r.call.row = e.call
	p.mu.Unlock()
}

// settleLocked counts a row or part as acknowledged or failed in its cut.
func (p *Producer) settleLocked(e *emitted, err error) {
	p.leftLocked(e)
	b := e.batch
	b.left--
	switch {
	case err != nil:
		b.end(err)
	case b.left == 0 && b.sealed:
		b.end(nil)
	}
}

// leftLocked is called when a deletion is acknowledged, has failed, or was replaced.
func (p *Producer) leftLocked(e *emitted) {
	if !e.leaves {
		return
	}
	if e.rows.leaving[e.key]--; e.rows.leaving[e.key] == 0 {
		delete(e.rows.leaving, e.key)
	}
	p.moved.Broadcast()
}

// refuseLocked stops the writing of rows and records the first reason; r may be nil.
func (p *Producer) refuseLocked(r *rows, err error) {
	if r != nil && r.err == nil {
		r.err = err
		p.moved.Broadcast()
	}
}

// advanceLocked hands the sender what may be sent now.
func (p *Producer) advanceLocked(r *rows) {
	moved := false
	for again := true; again; {
		parts := p.freeLocked(&r.parts, r.waiting, r.behind)
		rows := p.freeLocked(&r.waiting, r.parts, r.behind)
		deletions := p.freeLocked(&r.behind, r.parts, r.waiting)
		again = parts+rows+deletions > 0
		moved = moved || again
	}
	if !moved {
		return
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// freeLocked hands the sender the front of a queue up to the first entry that must wait. A row waits until its parts are
// acknowledged, a deletion until its row is. The other queues do not wait for it: otherwise a partition would write only
// one of them per request. But the entries of a cut are sent before those of later cuts, across all queues: the offset
// of a cut's last record is the offset up to which the local store claims to have everything.
func (p *Producer) freeLocked(queue *[]*row, one, other []*row) (n int) {
	for _, w := range *queue {
		if !w.free() || w.behind(one) || w.behind(other) {
			break
		}
		n++
		p.ready = append(p.ready, w)
	}
	if n > 0 {
		left := copy(*queue, (*queue)[n:])
		clear((*queue)[left:])
		*queue = (*queue)[:left]
	}
	return n
}

// behind reports whether a queue has something of a cut before the row's.
func (w *row) behind(queue []*row) bool { return len(queue) > 0 && queue[0].cut() < w.cut() }

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
	p.mu.Lock()
	err := w.rows.err
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
		for _, msg := range w.gone {
			p.async.Input() <- msg
		}
	}
	p.mu.Lock()
	if err != nil {
		p.refuseLocked(w.rows, err)
		p.refuseRowLocked(w, err)
		p.advanceLocked(w.rows) // what waited for it fails too
	}
	w.msg, w.gone = nil, nil // rows may wait for w after it was sent: release the messages
	p.mu.Unlock()
	if err != nil {
		p.opts.Failed(err)
		p.opts.Broken(err)
	}
}

func (p *Producer) refuseRowLocked(w *row, err error) {
	if w.msg != nil {
		e := w.msg.Metadata.(*emitted)
		if e.call != nil {
			e.call.pending--
		}
		p.settleLocked(e, err)
	}
	for _, msg := range w.gone {
		p.settleLocked(msg.Metadata.(*emitted), err)
	}
}

// abandon fails the cuts whose rows were not written when the producer closed.
func (p *Producer) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.ready
	p.ready = nil
	for _, r := range p.rows {
		left = append(left, r.parts...)
		left = append(left, r.waiting...)
		left = append(left, r.behind...)
		left = append(left, r.order...)
		r.parts, r.waiting, r.behind, r.order = nil, nil, nil, nil
		clear(r.held)
	}
	for _, w := range left {
		p.refuseRowLocked(w, sarama.ErrShuttingDown)
	}
}
