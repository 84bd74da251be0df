package cut

// emitRow holds a row of the callback that runs, or replaces the row that is held for the key.
func (p *Producer) emitRow(partition int32, e *emitted) {
	p.mu.Lock()
	r, key, msg := p.queues[partition], e.key, &e.msg
	e.queues, e.deletes = r, msg.Value == nil
	if e.deletes {
		r.deleting[key]++
	}
	w := r.held[key]
	if w != nil { // the held row is replaced and not sent
		replaced := w.msg.Metadata.(*emitted)
		e.batch = replaced.batch
		p.deletedLocked(replaced)
	} else {
		w = &entry{queues: r}
		e.batch = p.batch
		e.batch.left++
		r.held[key] = w
		r.order = append(r.order, w)
		p.armLocked()
	}
	w.msg = msg
	w.waitFor(r.callback)
	if p.opts.Ordered {
		w.written.pending = 1
		e.barrier = &w.written
	}
	r.callback.row = e.barrier
	p.mu.Unlock()
}

// settleLocked counts a row, part or deletion as acknowledged or failed in its cut.
func (p *Producer) settleLocked(e *emitted, err error) {
	p.deletedLocked(e)
	b := e.batch
	b.left--
	switch {
	case err != nil:
		b.end(err)
	case b.left == 0 && b.sealed:
		b.end(nil)
	}
}

// deletedLocked is called when a deletion is acknowledged, has failed, or was replaced.
func (p *Producer) deletedLocked(e *emitted) {
	if !e.deletes {
		return
	}
	if e.queues.deleting[e.key]--; e.queues.deleting[e.key] == 0 {
		delete(e.queues.deleting, e.key)
	}
	p.deletionEnded.Broadcast()
}

// stopRowsLocked stops the writing of rows and records the first reason; r may be nil.
func (p *Producer) stopRowsLocked(r *rowQueues, err error) {
	if r != nil && r.err == nil {
		r.err = err
		p.deletionEnded.Broadcast()
	}
}
