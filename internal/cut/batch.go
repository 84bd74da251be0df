package cut

// batch are the rows and parts of one cut.
type batch struct {
	cut    int64 // its number
	left   int
	sealed bool
	err    error
	done   chan struct{}
}

func newBatch(cut int64) *batch { return &batch{cut: cut, done: make(chan struct{})} }

// Done is closed when all of them are acknowledged, or one is refused.
func (b *batch) Done() <-chan struct{} { return b.done }

// Err is why they are not all written, once Done is closed.
func (b *batch) Err() error { return b.err }

// end is called with the producer's mutex held.
func (b *batch) end(err error) {
	select {
	case <-b.done:
	default:
		b.err = err
		close(b.done)
	}
}

// Seal ends the rows of a cut: what is held goes, and what comes now is of the next one. It is called when nothing is in
// flight, and does not block.
func (p *Producer) Seal() Settling {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.batch
	p.batch, b.sealed = newBatch(b.cut+1), true
	for _, r := range p.rows {
		p.releaseLocked(r)
	}
	if b.left == 0 {
		b.end(nil)
	}
	return b
}
