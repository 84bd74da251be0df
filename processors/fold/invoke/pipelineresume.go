package invoke

import (
	"context"
	"errors"
	"time"

	"github.com/turntable-streams/turntable/processors"
)

// Resume implements Resumer.
func (p *Pipeline) Resume(ctx context.Context, r Request, last EventID) (Stream, error) {
	select {
	case <-p.follower.Ready():
	default:
		return nil, errStarting
	}
	if last.Attempt < 1 {
		return nil, ErrGone // attempts begin at 1
	}
	s := p.open(r.SessionID, last.Turn)
	s.sequence.attempt = int64(min(last.Attempt, 1<<62))
	s.replayFrom(ctx, p.rules.clock.Now().Add(-p.rules.lookback))
	if err := s.prime(ctx, last); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// replayFrom starts a replay of the session's records since a time. They are read before the live ones.
func (s *pipelineStream) replayFrom(ctx context.Context, since time.Time) {
	ctx, s.cancelReplay = context.WithCancel(ctx)
	p := s.pipeline
	s.replay = p.hub.replay(ctx, p.follower, s.session, since, p.replays)
}

// prime reads the replay until it is clear whether the turn can be read from its first record, so that the response to a turn
// that cannot is 410. It fails with ErrGone if
//   - a record that the client has received is missing: all records up to last were on the topic, so the missing ones are
//     older than the look-back or were removed by the topic's retention;
//   - the replay has records of the turn but not the first one, and it does not arrive while the gap may stay open;
//   - the replay has no record of the turn, although last names an event or a later attempt than the first.
//
// Otherwise a turn without records may be about to begin.
func (s *pipelineStream) prime(ctx context.Context, last EventID) error {
	s.received = int64(min(last.Seq, 1<<62))
	bytes, counted := 0, 0
	for !s.primed() && (s.replay != nil || len(s.matched) > 0) {
		if err := s.step(ctx); err != nil {
			return err
		}
		for ; counted < len(s.ready); counted++ {
			bytes += sizeOf(s.ready[counted])
		}
		if bytes > s.pipeline.rules.waiting {
			return nil // the queue is full, and the turn's first record was found
		}
	}
	if !s.primed() && (s.received > 0 || last.Attempt > 1 && !s.sequence.open()) {
		return ErrGone
	}
	for !s.primed() && s.sequence.open() {
		if err := s.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// primed reports whether all records that the client has, and at least the turn's first record, were read, or a newer
// attempt has begun.
func (s *pipelineStream) primed() bool { return s.newer != nil || s.sequence.seq >= max(s.received, 1) }

// gapError returns the error about a missing record: ErrGone if the beginning of the turn was not found in the replay.
func (s *pipelineStream) gapError() error {
	if s.gapInReplay && s.sequence.seq < max(s.received, 1) {
		return ErrGone
	}
	return errGap
}

// stepReplay takes the next record of the replay.
func (s *pipelineStream) stepReplay(ctx context.Context) error {
	select {
	case l, ok := <-s.replay.records:
		switch {
		case ok && l.failed != nil:
			return s.outputError(*l.failed)
		case ok:
			return s.take(l)
		}
		replay := s.replay
		s.replay, s.from = nil, replay.next
		s.cancelReplay()
		if errors.Is(replay.err, processors.ErrNotFollowing) || errors.Is(replay.err, context.Canceled) && ctx.Err() == nil {
			return errStarting // the follower is not connected
		}
		return replay.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
