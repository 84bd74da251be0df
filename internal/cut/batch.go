package cut

// batch counts the rows and parts of one cut.
type batch struct {
	cut    int64 // its number
	left   int
	sealed bool
	err    error
	done   chan struct{}
}

func newBatch(cut int64) *batch { return &batch{cut: cut, done: make(chan struct{})} }

// Done is closed when all of them are acknowledged, or one has failed.
func (b *batch) Done() <-chan struct{} { return b.done }

// Err returns why they were not all written. It is valid once Done is closed.
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

// Seal ends the rows of a cut: rows that are held are sent, and later rows belong to the next cut. It is called when
// nothing is in flight, and does not block.
func (p *Producer) Seal() Settling {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.batch
	p.batch, b.sealed = newBatch(b.cut+1), true
	for _, r := range p.queues {
		p.releaseLocked(r)
	}
	if b.left == 0 {
		b.end(nil)
	}
	return b
}
