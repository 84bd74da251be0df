package cut

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"
)

// Run closes the cuts until revoked ends or the series fails. On revocation, and for FailAfterCut, it drains, makes the last
// cut, and cancels Context; on failure it cancels Context at once. It returns why the series failed, or nil.
func (s *Series) Run(revoked context.Context) error {
	defer close(s.done)
	defer s.cancel()
	defer s.cutTimer.Stop()
	defer s.flushTimer.Stop()
	for {
		select {
		case <-s.failed:
			return s.Err()
		case <-revoked.Done():
			return s.drain()
		case err := <-s.failing:
			if drained := s.drain(); drained != nil {
				return drained
			}
			s.Fail(err)
			return s.Err()
		case j := <-s.pending:
			s.close(revoked, j, s.policy.Drain)
		case <-s.cutTimer.C:
			s.makeDueCut()
		case <-s.flushTimer.C:
			s.flushDelayed()
		}
	}
}

// makeDueCut makes a cut that is due, or shuts the gate for it if records have been in flight for too long.
func (s *Series) makeDueCut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun || s.ending {
		return
	}
	age := time.Since(s.started)
	force := s.policy.Force
	if s.policy.Backlog > 0 && s.lag > s.policy.Backlog {
		force = s.policy.Lagging
	}
	switch limit := s.policy.Every + force; {
	case age < s.policy.Every:
		s.cutTimer.Reset(s.policy.Every - age)
	case s.closing:
		// No cut can be made before the previous one is closed. Shutting the gate now would only delay records.
		s.cutTimer.Reset(10 * time.Millisecond)
	case s.active() == 0:
		s.cutLocked()
	case age >= limit:
		s.shut = true // Release makes the cut
	default:
		s.cutTimer.Reset(limit - age)
	}
}

// close ends one cut while the series runs.
func (s *Series) close(ctx context.Context, j pendingCut, grace time.Duration) {
	began := time.Now()
	err := s.settle(ctx, j.rows, grace)
	if err == nil {
		err = s.commit(ctx, j.offsets)
	}
	j.made.Took = time.Since(began)
	s.mu.Lock()
	switch {
	case errors.Is(err, ErrNotCommitted):
		s.log.Warn("offsets were not committed: the next cut commits them", zap.Error(err))
		s.uncommitted, s.commitErr = s.uncommitted+1, err
		s.keepOffsetsLocked(j.offsets)
	case err != nil:
		s.failLocked(fmt.Errorf("cut: close: %w", err))
		s.mu.Unlock()
		return
	default:
		s.cuts++
		s.uncommitted, s.commitErr = 0, nil
		if s.made != nil {
			s.made(j.made)
		}
	}
	if !s.closer.Background() {
		s.sealLayers() // the transaction is committed: only now may the local store advance
		if !s.ending {
			s.openLocked()
		}
	}
	s.mu.Unlock()

	// The flush runs while the next cut is open; the next close waits for it.
	if wait := s.policy.Flush - time.Since(s.flushed); wait > 0 && !s.heavy() {
		s.flushTimer.Reset(wait)
		s.finishClose(nil)
		return
	}
	s.finishClose(s.flush())
}

// commit asks the closer to commit, and notes for Waiting that it does.
func (s *Series) commit(ctx context.Context, offsets map[Partition]int64) error {
	began := func(at time.Time) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.committing = at
	}
	began(time.Now())
	defer began(time.Time{})
	return s.closer.Close(ctx, offsets, s.member())
}

// flushDelayed writes the cuts that were closed too soon after a flush. No other cut may be sealed meanwhile: its rows may
// not be written yet.
func (s *Series) flushDelayed() {
	s.mu.Lock()
	if s.closing || s.ending { // closing the cut flushes too
		s.mu.Unlock()
		return
	}
	s.closing = true
	s.mu.Unlock()
	s.finishClose(s.flush())
}

// finishClose allows the next cut, or fails the series if the local store could not be written.
func (s *Series) finishClose(err error) {
	if err != nil {
		s.Fail(err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = false
	if s.active() == 0 && !s.ending {
		s.idleLocked()
	}
}

// settle waits for the rows of a cut: neither the offsets nor the local store may be ahead of them. Once ctx has ended it
// waits for grace at most and then returns ErrDrain.
func (s *Series) settle(ctx context.Context, rows Settling, grace time.Duration) error {
	if rows == nil {
		return nil
	}
	select {
	case <-rows.Done():
		return rows.Err()
	case <-s.failed:
		return s.Err()
	case <-ctx.Done():
	}
	limit := time.NewTimer(grace)
	defer limit.Stop()
	select {
	case <-rows.Done():
		return rows.Err()
	case <-s.failed:
		return s.Err()
	case <-limit.C:
		return ErrDrain
	}
}

// keepOffsetsLocked puts offsets that were not committed back into the open cut, except where it has newer ones.
func (s *Series) keepOffsetsLocked(offsets map[Partition]int64) {
	newer := s.offsets
	s.offsets = offsets
	maps.Copy(s.offsets, newer)
	if !s.begun {
		s.begun, s.started = true, time.Now()
		s.cutTimer.Reset(max(s.policy.Every, 10*time.Millisecond))
	}
}

func (s *Series) heavy() bool {
	return slices.ContainsFunc(s.layers(), Layer.Heavy)
}

func (s *Series) flush() error {
	s.flushed = time.Now()
	for _, l := range s.layers() {
		if err := l.Flush(); err != nil {
			return fmt.Errorf("%w: %w", ErrStore, err)
		}
	}
	return nil
}
