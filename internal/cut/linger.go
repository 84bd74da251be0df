package cut

import "time"

// linger is the timer that releases held rows. It runs only while rows are held.
type linger struct {
	timer *time.Timer
	armed bool
}

func (p *Producer) armLocked() {
	switch {
	case p.armed || p.opts.Linger <= 0 || p.ended:
		return
	case p.timer == nil:
		p.timer = time.AfterFunc(p.opts.Linger, p.sweep)
	default:
		p.timer.Reset(p.opts.Linger)
	}
	p.armed = true
}

func (p *Producer) disarm() {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.armed = false
}

func (p *Producer) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = false
	if p.ended {
		return
	}
	for _, r := range p.queues {
		p.releaseLocked(r)
	}
}
