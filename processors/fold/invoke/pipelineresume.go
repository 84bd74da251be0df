package invoke

import (
	"context"
	"errors"

	"github.com/turntable-streams/turntable/processors"
)

// Resume implements Resumer.
func (p *Pipeline) Resume(ctx context.Context, r Request, last EventID) (Stream, error) {
	if !p.isReady() {
		return nil, errStarting
	}
	if last.Attempt < 1 {
		return nil, ErrGone // attempts begin at 1
	}
	s, err := p.resume(ctx, r, last)
	if errors.Is(err, ErrGone) {
		// The client may have events of a turn that another process serves and that the index does not have yet.
		if err := p.catchUp(ctx, r.SessionID); err != nil {
			return nil, err
		}
		s, err = p.resume(ctx, r, last)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// resume continues a turn as far as the index has it.
func (p *Pipeline) resume(ctx context.Context, r Request, last EventID) (*pipelineStream, error) {
	s, known := p.open(r, last.Turn)
	s.sequence.attempt = int64(min(last.Attempt, 1<<62))
	if err := s.begin(ctx, known, last); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// catchUp waits until the index has all records of a session that are in Kafka now.
func (p *Pipeline) catchUp(ctx context.Context, session string) error {
	for _, topic := range p.followed() {
		if topic == p.topics.MessageOutput.Name() {
			continue
		}
		if err := p.follower.CatchUp(ctx, topic, session); err != nil {
			return notConnected(ctx, err)
		}
	}
	return nil
}

// notConnected replaces errors that mean that the follower is not connected.
func notConnected(ctx context.Context, err error) error {
	if errors.Is(err, processors.ErrNotFollowing) || errors.Is(err, context.Canceled) && ctx.Err() == nil {
		return errStarting
	}
	return err
}

// begin starts to read a turn of the index from its first record. It returns ErrGone if the turn is not in the index, began
// before the look-back, has no events although last names one, or if none of its records is where the index has them.
func (s *pipelineStream) begin(ctx context.Context, known *indexedTurn, last EventID) error {
	config := s.pipeline.config
	switch {
	case known == nil, known.end != nil && known.first < 0, !known.began.After(config.Clock.Now().Add(-config.Lookback)):
		return ErrGone
	case known.first < 0 && (last.Seq > 0 || last.Attempt > 1):
		return ErrGone
	}
	s.turn, s.failed = known.turn, known.failed
	s.finish(known.end)
	if known.first < 0 {
		s.touched = earlier(s.touched, known.touched) // the message waits since then
		return nil
	}
	s.replayFrom(ctx, section{known.partition, known.first, known.last + 1})
	return s.prime(ctx, last)
}

// replayFrom starts a replay of the session's records in a section. They are read before the live ones.
func (s *pipelineStream) replayFrom(ctx context.Context, from section) {
	ctx, s.cancelReplay = context.WithCancel(ctx)
	s.from = from
	s.replay = s.pipeline.replay(ctx, s.caller, s.session, s.turn, from)
}

// prime reads the replay until it is clear whether the turn can be read from its first record, so that the response to a turn
// that cannot is 410. It fails with ErrGone if
//   - a record that the client has received is missing: all records up to last were on the topic, so the missing ones are
//     older than the look-back or were removed by the topic's retention;
//   - the replay has records of the turn but not the first one, and it does not arrive while the gap may stay open;
//   - the replay has no record of the attempt, although last names an event of it or a later attempt than the first.
//
// Otherwise a turn without valid records may be about to begin.
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
		if bytes > s.pipeline.config.WaitingBytes {
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
func (s *pipelineStream) primed() bool {
	return s.newer != nil || s.replaced || !s.unread()
}

// unread reports whether records are to be read that the client has, or the turn's first one. A turn can end without one.
func (s *pipelineStream) unread() bool {
	least := int64(1)
	if s.ended != nil && s.ended.attempt == s.sequence.attempt {
		least = min(least, s.ended.seq)
	}
	return s.sequence.seq < max(s.received, least)
}

// stepReplay takes the next record of the replay.
func (s *pipelineStream) stepReplay(ctx context.Context) error {
	select {
	case l, ok := <-s.replay.records:
		if ok {
			return s.take(ctx, l)
		}
		err := s.replay.err
		if err == nil && !s.replay.found {
			err = ErrGone // retention removed the records, or the topic was deleted and created again
		}
		s.replay = nil
		s.cancelReplay()
		return notConnected(ctx, err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// readAgain reads the turn again from its first record, up to the record at which other events of a step took the place of those
// that were read. The sequence knows which. The index may have forgotten the first record: the turn can have waited for longer
// than PipelineConfig.Lookback.
func (s *pipelineStream) readAgain(ctx context.Context, l sessionRecord) {
	end := l.offset + 1
	for _, after := range s.matched {
		end = max(end, after.offset+1)
	}
	if s.from.partition == l.partition {
		end = max(end, s.from.end)
	}
	s.stopReplay()
	s.ready, s.matched, s.missingSince = nil, nil, s.touched
	s.replaced = s.sequence.supersedes()
	s.replayFrom(ctx, section{l.partition, s.first, end})
}

// stopReplay waits until the replay has ended, if there is one.
func (s *pipelineStream) stopReplay() {
	if s.cancelReplay != nil {
		s.cancelReplay()
	}
	if s.replay != nil {
		for range s.replay.records {
			continue
		}
		s.replay = nil
	}
}
