package cut

import "github.com/IBM/sarama"

// sequence is the outputs of one session that are acknowledged one topic after the other: an output is sent when all outputs
// of other topics before it are acknowledged. Neither the callback nor the acknowledgement waits; the sender sends what is
// due. Outputs of later callbacks of the session are queued behind, so that they cannot overtake the waiting ones on their
// topic. Other sessions are not delayed.
//
//	callback:  all-complete  tool message  enriched
//	sent:      all-complete
//	                      ack
//	                         tool message
//	                                     ack
//	                                        enriched
//
// The waiting outputs are bounded as all outputs are: their records are in flight until they are acknowledged.
type sequence struct {
	queues  *rowQueues
	key     string     // of the callbacks
	topic   string     // of the outputs that are sent
	sent    int        // of them, are not acknowledged
	waiting []*emitted // for the acknowledgement of those that are sent
	err     error      // of the first output that failed: nothing after it is sent
}

// Sequence makes the later outputs of the callback that runs on a partition a sequence. key is the callback's.
func (p *Producer) Sequence(partition int32, key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.queues[partition]; r != nil && r.sequence == nil {
		r.sequence = &sequence{queues: r, key: key}
	}
}

// sequenceLocked sends an output of a sequence, or queues it. It returns an error if the output will not be sent.
func (p *Producer) sequenceLocked(s *sequence, e *emitted) error {
	switch {
	case s.err != nil:
		return s.err
	case p.ended:
		return errEnded
	}
	e.sequence = s
	if s.queues.sequences == nil {
		s.queues.sequences = map[string]*sequence{}
	}
	s.queues.sequences[s.key] = s
	s.waiting = append(s.waiting, e)
	if s.sent == 0 || len(s.waiting) == 1 && s.topic == e.msg.Topic {
		p.continueLocked(s)
	}
	return nil
}

// continueLocked hands the sender the waiting outputs up to the next change of topic.
func (p *Producer) continueLocked(s *sequence) {
	s.topic = s.waiting[0].msg.Topic
	n := 0
	for n < len(s.waiting) && s.waiting[n].msg.Topic == s.topic {
		n++
	}
	s.sent += n
	p.due = append(p.due, s.waiting[:n]...)
	left := copy(s.waiting, s.waiting[n:])
	clear(s.waiting[left:])
	s.waiting = s.waiting[:left]
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// acknowledgedLocked counts an output of a sequence as acknowledged or failed. It returns the outputs that are not sent
// because of that; the caller must fail them.
func (p *Producer) acknowledgedLocked(s *sequence, err error) (unsent []*emitted) {
	s.sent--
	if s.err == nil {
		s.err = err
	}
	switch {
	case s.err != nil:
		return s.takeWaiting()
	case s.sent > 0:
	case len(s.waiting) > 0:
		p.continueLocked(s)
	default:
		delete(s.queues.sequences, s.key)
	}
	return nil
}

// takeWaiting removes the waiting outputs and no longer counts them as what rows wait for.
func (s *sequence) takeWaiting() []*emitted {
	unsent := s.waiting
	s.waiting = nil
	for _, e := range unsent {
		e.sequence = nil
	}
	return unsent
}

// sendDue sends an output of a sequence, or fails it if the lease is not held any more.
func (p *Producer) sendDue(e *emitted) {
	if p.opts.Lease.Held() {
		p.async.Input() <- &e.msg
		return
	}
	p.acknowledge(&e.msg, ErrLease)
}

// failSequences fails the outputs that were not sent when the producer closed.
func (p *Producer) failSequences() {
	p.mu.Lock()
	unsent := p.due
	p.due = nil
	for _, r := range p.queues {
		for _, s := range r.sequences {
			unsent = append(unsent, s.takeWaiting()...)
		}
		r.sequences = nil
	}
	p.mu.Unlock()
	for _, e := range unsent {
		e.sequence = nil
		p.acknowledge(&e.msg, sarama.ErrShuttingDown)
	}
}
