package invoke

import (
	"context"
	"slices"
	"time"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/topics"
)

// answer continues the turn that a request answers. It returns nil for a request without an answer.
func (b *Buffered) answer(ctx context.Context, r Request) (Stream, error) {
	replies, err := repliesOf(r.Messages())
	if err != nil || len(replies) == 0 {
		return nil, err
	}
	may := r.Caller.Can(auth.Answer)
	if !may && slices.ContainsFunc(replies, func(p reply) bool { return p.decides }) {
		return nil, errForbidden
	}
	for { // until no other answer was applied while this one was matched
		q, err := b.inquiriesOf(r.SessionID)
		if err != nil {
			return nil, err
		}
		m, err := matchReplies(replies, q.gates())
		switch {
		case err != nil:
			return nil, err
		case len(m.open) == 0 && len(m.decided) == 0:
			return nil, nil
		case !may:
			return nil, errForbidden
		case len(m.open) == 0:
			return q.repeat(m.decided)
		}
		stream, applied, err := b.apply(ctx, r, q, m)
		if applied || err != nil {
			return stream, err
		}
	}
}

// apply applies answers to the interactions of one turn; applied is false if the turn has changed since they were matched.
func (b *Buffered) apply(ctx context.Context, r Request, q inquiries, m matches) (s Stream, applied bool, err error) {
	to := q[m.open[0].at]
	for _, one := range m.open[1:] {
		if q[one.at].rec != to.rec {
			return nil, false, errTwoTurns
		}
	}
	for _, one := range m.decided { // of this turn: the client's history may repeat old answers, but not change them
		if at := q[one.at]; at.rec == to.rec {
			if err := at.conflict(one); err != nil {
				return nil, false, err
			}
		}
	}
	if to.running { // the request was sent before the run has ended
		return nil, false, b.untilSettled(ctx, to.rec)
	}
	b.mu.Lock()
	b.forget() // the deadline may have been reached
	kept := b.turns[to.rec.key] == to.rec
	if b.closed {
		b.mu.Unlock()
		return nil, false, errClosed
	}
	began, c, decisions, applied := to.rec.take(r, q, m, b.config.Clock.Now(), kept)
	if applied && c.TurnID != "" {
		b.runs.Add(1)
	}
	b.mu.Unlock()
	if !applied || c.TurnID == "" {
		return to.play(), applied, nil
	}
	begin := func(run context.Context) (Stream, error) { return b.continuer.Continue(run, began, c) }
	if err := b.run(ctx, to.rec, begin, func() { to.rec.suspend(decisions) }); err != nil {
		return nil, false, err
	}
	return to.play(), true, nil
}

// take decides the matched interactions. If all of the turn are decided then, the turn runs again and c has its ID.
func (r *recording) take(by Request, q inquiries, m matches, now time.Time, kept bool) (
	began Request, c Continuation, decisions []int, applied bool,
) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !kept || !r.asks.waits || r.asks.version != q[m.open[0].at].version {
		return Request{}, Continuation{}, nil, false
	}
	for _, one := range m.open {
		at := q[one.at].index
		r.asks.decide(at, one.outcome(q[one.at].gated, by), r.key, now)
		decisions = append(decisions, at)
	}
	if someOpen(r.asks.list) {
		return Request{}, Continuation{}, nil, true
	}
	began, c = r.resume()
	c.Answer = by
	return began, c, decisions, true
}

// outcome returns the outcome of an interaction with this answer.
func (m match) outcome(to gated, by Request) topics.GateOutcome {
	o := topics.GateOutcome{
		Status: topics.GateApproved, Cause: topics.CauseHuman, Reason: m.reason, By: by.Caller.Name(),
		DecisionID: by.Trace.TraceID + "-" + by.Trace.SpanID,
	}
	switch m.verdict(to) {
	case topics.VerdictDeny:
		o.Status = topics.GateDenied
	case topics.VerdictAnswer:
		o.Answer = m.answer()
	}
	return o
}

// untilSettled waits until a run pauses or ends.
func (b *Buffered) untilSettled(ctx context.Context, rec *recording) error {
	rec.mu.Lock()
	settled := rec.asks.settled
	rec.mu.Unlock()
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-b.ctx.Done():
		return errClosed
	}
}
