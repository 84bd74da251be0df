package cut

import (
	"fmt"
	"slices"

	"github.com/IBM/sarama"
)

// rows are the callbacks and the unsent table rows of one partition.
//
// A row is held, and replaced by newer ones of its key, until a linger has passed or the cut is made: so a linger costs
// one batch of rows, and a session one row in it. Nor does a row hold up the outputs behind it, which would wait until
// its request is answered: one request is in flight.
type rows struct {
	partition int32
	call      *call           // whose callback runs, or ran last
	held      map[string]*row // by key
	order     []*row          // the held ones
	parts     []*row          // which wait for what belongs to cuts before theirs, in order
	waiting   []*row          // for outputs and parts, in order
	behind    []*row          // deletions, which wait for the rows in front of them, in order
	// leaving counts the deletions of a key that are on their way. Nothing that is sent ahead of rows may overtake them.
	leaving map[string]int
	// err is why an output of this partition was not written. No row is from then on: a later one of the same key would
	// hold what the failed record did, and prove outputs that are not there.
	err error
}

// call is what is known of the outputs of one callback, and of the parts of its row; or of a row that was sent.
type call struct {
	pending int
	row     *call // the row it has written, for deletions of parts; nil: they need not wait for it
}

// row is a row of the table that was not sent, a part of one, or deletions of parts of one that was.
type row struct {
	msg  *sarama.ProducerMessage   // nil for deletions alone
	gone []*sarama.ProducerMessage // deletions of its parts, behind it: what precedes it in the changelog names them
	// calls are the callbacks whose effects the row holds: its own, and those whose rows it has replaced.
	calls []*call
	few   [2]*call // room for as many as most rows have
	sent  call     // the row's own, for deletions behind it
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

// cut is the number of the cut that a row belongs to.
func (w *row) cut() int64 {
	msg := w.msg
	if msg == nil {
		msg = w.gone[0]
	}
	return msg.Metadata.(*emitted).batch.cut
}

// releaseLocked has what is held sent when its outputs are acknowledged.
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

// queue puts a row behind what waits, and the deletions of its parts behind the row.
func (r *rows) queue(w *row) {
	r.waiting = append(r.waiting, w)
	if len(w.gone) > 0 {
		r.put(r.deletions(w.gone, w.msg.Metadata.(*emitted).call))
		w.gone = nil
	}
}

// put queues deletions. Those that wait for no row keep their place among the rows, behind the parts of their cut.
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
	if w != nil { // the row that was to go is not sent
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

// settleLocked counts an acknowledged or refused row or part out of its cut.
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

// leftLocked is called when a deletion is over, or was replaced.
func (p *Producer) leftLocked(e *emitted) {
	if !e.leaves {
		return
	}
	if e.rows.leaving[e.key]--; e.rows.leaving[e.key] == 0 {
		delete(e.rows.leaving, e.key)
	}
	p.moved.Broadcast()
}

// refuseLocked keeps the first reason for which rows are not written any more; r may be nil.
func (p *Producer) refuseLocked(r *rows, err error) {
	if r != nil && r.err == nil {
		r.err = err
		p.moved.Broadcast()
	}
}

// advanceLocked hands the sender what has become free to go.
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

// freeLocked hands the sender the front of a queue as far as it is free. A row waits until its parts are acknowledged, a
// deletion until its row is, and what is behind them need not: a request each would be all that a partition gets done.
// But what belongs to a cut goes ahead of what belongs to later ones, from the other queues too: the offset of a cut's
// last record is that up to which the local store is said to have everything.
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
		err = fmt.Errorf("cut: table row is not written, an output before it was not: %w", err)
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
		p.advanceLocked(w.rows) // what waited for it is refused too
	}
	w.msg, w.gone = nil, nil // whoever waits for the row does not keep it
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

// abandon ends the cuts whose rows were not written when the producer closed.
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
