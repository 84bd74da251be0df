package invoke

import (
	"slices"

	"github.com/turntable-streams/turntable/topics"
)

// inquiry is an interaction of a turn of a session, when the answers were matched.
type inquiry struct {
	ask
	rec     *recording
	index   int // in asks.list
	version int
	running bool // the turn has not paused yet
}

type inquiries []inquiry

// inquiriesOf returns the interactions of a session, of the oldest turn first.
func (b *Buffered) inquiriesOf(session string) (inquiries, error) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil, errClosed
	}
	b.forget()
	turns := slices.DeleteFunc(slices.Clone(b.order), func(r *recording) bool { return r.key.session != session })
	b.mu.Unlock()
	var q inquiries
	for _, rec := range turns {
		q = append(q, rec.inquiries()...)
	}
	return q, nil
}

// inquiries returns the interactions of the turn, with those of a run that has not paused yet.
func (r *recording) inquiries() (q inquiries) {
	r.mu.Lock()
	list, events, attempt := slices.Clone(r.asks.list), r.events[:len(r.events):len(r.events)], r.attempt
	version, running := r.asks.version, !r.done
	r.mu.Unlock()
	for i, a := range list {
		q = append(q, inquiry{ask: a, rec: r, index: i, version: version})
	}
	if !running {
		return q
	}
	asked, _ := askedIn(events, int64(attempt), list)
	for _, a := range asked {
		if a.open && a.since.IsZero() {
			q = append(q, inquiry{ask: a, rec: r, version: version, running: true})
		}
	}
	return q
}

func (q inquiries) gates() []gated {
	list := make([]gated, len(q))
	for i := range q {
		list[i] = q[i].gated
	}
	return list
}

// repeat returns the stream of the turn that answers have decided before, if they are the same.
func (q inquiries) repeat(decided []match) (Stream, error) {
	last := q[decided[len(decided)-1].at]
	for _, one := range decided {
		if at := q[one.at]; at.rec == last.rec {
			if err := at.conflict(one); err != nil {
				return nil, err
			}
		}
	}
	return last.play(), nil
}

// play returns the stream of the turn for a client that has the events before the pause.
func (q inquiry) play() *playback {
	attempt := uint64(q.attempt)
	return &playback{rec: q.rec, attempt: attempt, from: EventID{q.rec.key.turn, attempt, uint64(q.after)}}
}

// conflict returns an error if the interaction has another outcome than the answer's.
func (q inquiry) conflict(m match) error {
	switch o := q.outcome; {
	case o == nil:
		return errDecided(nil)
	case o.Status == topics.GateTimedOut, o.Status == topics.GateCancelled,
		(o.Status == topics.GateApproved) != (m.verdict(q.gated) != topics.VerdictDeny),
		o.Answer != nil && !topics.Equal(o.Answer, m.answer()):
		return errDecided(o)
	}
	return nil
}
