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

// Run closes the cuts until revoked ends or the series fails. On revocation it drains, makes the last cut, and cancels
// Context; on failure it cancels Context at once. It returns why the series failed, or nil.
func (s *Series) Run(revoked context.Context) error {
	defer close(s.done)
	defer s.cancel()
	defer s.timer.Stop()
	defer s.late.Stop()
	for {
		select {
		case <-s.failed:
			return s.Err()
		case <-revoked.Done():
			return s.drain()
		case j := <-s.jobs:
			s.close(revoked, j, s.policy.Drain)
		case <-s.timer.C:
			s.age()
		case <-s.late.C:
			s.flushLate()
		}
	}
}

// age makes a cut that is due, or shuts the gate for it if records have been in flight for too long.
func (s *Series) age() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun || s.sealed {
		return
	}
	age := time.Since(s.started)
	force := s.policy.Force
	if s.policy.Backlog > 0 && s.behind > s.policy.Backlog {
		force = s.policy.Lagging
	}
	switch limit := s.policy.Every + force; {
	case age < s.policy.Every:
		s.timer.Reset(s.policy.Every - age)
	case s.closing:
		// No cut can be made before the previous one is closed. Shutting the gate now would only delay records.
		s.timer.Reset(10 * time.Millisecond)
	case s.inflight == 0:
		s.cutLocked()
	case age >= limit:
		s.shut = true // Release makes the cut
	default:
		s.timer.Reset(limit - age)
	}
}

// close ends one cut while the series runs.
func (s *Series) close(ctx context.Context, j job, grace time.Duration) {
	began := time.Now()
	err := s.settle(ctx, j.rows, grace)
	if err == nil {
		err = s.closer.Close(ctx, j.offsets, s.member())
	}
	j.made.Took = time.Since(began)
	s.mu.Lock()
	switch {
	case errors.Is(err, ErrNotCommitted):
		s.log.Warn("offsets were not committed: the next cut commits them", zap.Error(err))
		s.missed, s.missing = s.missed+1, err
		s.keepLocked(j.offsets)
	case err != nil:
		s.failLocked(fmt.Errorf("cut: close: %w", err))
		s.mu.Unlock()
		return
	default:
		s.cuts++
		s.missed, s.missing = 0, nil
		if s.made != nil {
			s.made(j.made)
		}
	}
	if !s.closer.Background() {
		s.sealLayers() // the transaction is committed: only now may the local store advance
		if !s.sealed {
			s.openLocked()
		}
	}
	s.mu.Unlock()

	// The flush runs while the next cut is open; the next close waits for it.
	if wait := s.policy.Flush - time.Since(s.flushed); wait > 0 && !s.heavy() {
		s.late.Reset(wait)
		s.closed(nil)
		return
	}
	s.closed(s.flush())
}

// flushLate writes the cuts that were closed too soon after a flush. No other cut may be sealed meanwhile: its rows may
// not be written yet.
func (s *Series) flushLate() {
	s.mu.Lock()
	if s.closing || s.sealed { // closing the cut flushes too
		s.mu.Unlock()
		return
	}
	s.closing = true
	s.mu.Unlock()
	s.closed(s.flush())
}

// closed allows the next cut, or fails the series if the local store could not be written.
func (s *Series) closed(err error) {
	if err != nil {
		s.Fail(err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = false
	if s.inflight == 0 && !s.sealed {
		s.quietLocked()
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

// keepLocked puts offsets that were not committed back into the open cut, except where it has newer ones.
func (s *Series) keepLocked(offsets map[Partition]int64) {
	newer := s.offsets
	s.offsets = offsets
	maps.Copy(s.offsets, newer)
	if !s.begun {
		s.begun, s.started = true, time.Now()
		s.timer.Reset(max(s.policy.Every, 10*time.Millisecond))
	}
}

func (s *Series) heavy() bool {
	return slices.ContainsFunc(s.layers(), Layer.Heavy)
}

func (s *Series) flush() error {
	s.flushed = time.Now()
	for _, l := range s.layers() {
		if err := l.Flush(); err != nil {
			return fmt.Errorf("cut: local store: %w", err)
		}
	}
	return nil
}

// drain shuts the gate permanently, waits for what is in flight and makes the last cut. The coordinator still accepts its
// offsets, since the member has not rejoined.
func (s *Series) drain() error {
	limit := time.NewTimer(s.policy.Drain)
	defer limit.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), s.policy.Drain)
	defer cancel()

	s.mu.Lock()
	s.sealed = true
	s.turn.Broadcast()
	busy, failed := s.inflight > 0, s.err
	s.mu.Unlock()
	if failed != nil { // and was revoked at the same time
		return failed
	}

	select {
	case j := <-s.jobs: // a cut that was made but is not closed yet
		s.close(ctx, j, 0)
	default:
	}
	if busy {
		select {
		case <-s.quiet:
		case <-s.failed:
		case <-limit.C:
			s.Fail(ErrDrain)
			return s.Err()
		}
	}

	s.mu.Lock()
	offsets, begun := s.offsets, s.begun
	failed = s.err
	if failed != nil { // maybe at the moment when nothing was in flight: nothing after the failure is committed
		s.mu.Unlock()
		return failed
	}
	s.offsets, s.begun = map[Partition]int64{}, false
	s.mu.Unlock()
	if !begun {
		return s.flushAll()
	}
	background := s.closer.Background()
	rows := s.sealRows()
	if background {
		s.sealLayers()
	}
	err := s.settle(ctx, rows, 0)
	if err == nil {
		err = s.closer.Close(ctx, offsets, s.member())
	}
	switch {
	case errors.Is(err, ErrNotCommitted):
		s.log.Warn("the last cut's offsets are not committed: its records will be repeated", zap.Error(err))
	case err != nil:
		s.Fail(fmt.Errorf("cut: close: %w", err))
		return s.Err()
	case !background:
		s.sealLayers()
	}
	return s.flushAll()
}

// flushAll writes all sealed cuts, so that the next start of this store need not read them from the changelog.
func (s *Series) flushAll() error {
	if err := s.flush(); err != nil {
		s.Fail(err)
	}
	return s.Err()
}
