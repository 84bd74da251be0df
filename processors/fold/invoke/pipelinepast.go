package invoke

import (
	"context"
	"errors"
	"time"

	"github.com/turntable-streams/turntable/processors"
)

// replayFrom has the turn's events of the past read before the live ones.
func (s *pipelineStream) replayFrom(ctx context.Context, since time.Time) {
	ctx, s.forget = context.WithCancel(ctx)
	p := s.pipeline
	s.past = p.hub.replay(ctx, p.follower, s.session, since, p.replays)
}

// prime reads the past until it is known whether the turn can be read from its first record, so that one that cannot is
// refused before the response begins. It fails with ErrGone where
//   - a record is missing that the client has: whoever has the event with number n was sent all before it, so all of them
//     were on the topic, and what is not found was cut off, by the look-back or by the topic's retention;
//   - the past has records of the turn, but not its first one, and that did not come in the time that a gap may stay open;
//   - the past has no record of the turn, although the client knows of one: it names an event, or a second attempt.
//
// A turn of which nothing is found, and nothing is known, may be about to begin.
func (s *pipelineStream) prime(ctx context.Context, last EventID) error {
	s.has = int64(min(last.Seq, 1<<62))
	bytes, counted := 0, 0
	for !s.primed() && (s.past != nil || len(s.found) > 0) {
		if err := s.step(ctx); err != nil {
			return err
		}
		for ; counted < len(s.ready); counted++ {
			bytes += sizeOf(s.ready[counted])
		}
		if bytes > s.pipeline.rules.waiting {
			return nil // that is much to keep, and the turn's beginning is there
		}
	}
	if !s.primed() && (s.has > 0 || last.Attempt > 1 && !s.sequence.open()) {
		return ErrGone
	}
	for !s.primed() && s.sequence.open() {
		if err := s.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// primed reports whether all that the client has was read, and at least the turn's first record; or that a newer attempt
// has voided it.
func (s *pipelineStream) primed() bool { return s.held != nil || s.sequence.seq >= max(s.has, 1) }

// gapError is the error about a record that stays missing. A turn whose beginning was not found in the past cannot be
// read again, whatever it said.
func (s *pipelineStream) gapError() error {
	if s.cut && s.sequence.seq < max(s.has, 1) {
		return ErrGone
	}
	return errGap
}

// stepBack takes the next record of the past.
func (s *pipelineStream) stepBack(ctx context.Context) error {
	select {
	case l, ok := <-s.past.letters:
		switch {
		case ok && l.failed != nil:
			return s.refused(*l.failed)
		case ok:
			return s.take(l)
		}
		past := s.past
		s.past, s.from = nil, past.next
		s.forget()
		if errors.Is(past.err, processors.ErrNotFollowing) || errors.Is(past.err, context.Canceled) && ctx.Err() == nil {
			return errStarting // the brokers are away, or the reader connects to them again
		}
		return past.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
