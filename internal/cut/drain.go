package cut

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// drain shuts the gate permanently, waits for what is in flight and makes the last cut. The coordinator still accepts its
// offsets, since the member has not rejoined.
func (s *Series) drain() error {
	limit := time.NewTimer(s.policy.Drain)
	defer limit.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), s.policy.Drain)
	defer cancel()

	s.mu.Lock()
	s.ending = true
	s.gate.Broadcast()
	busy, failed := s.active() > 0, s.err
	s.mu.Unlock()
	if failed != nil { // and was revoked at the same time
		return failed
	}
	select {
	case j := <-s.pending: // a cut that was made but is not closed yet
		s.close(ctx, j, 0)
	default:
	}
	if busy {
		select {
		case <-s.idle:
		case <-s.failed:
		case <-limit.C:
			s.Fail(ErrDrain)
			return s.Err()
		}
	}
	if err := s.closeLast(ctx); err != nil {
		return err
	}
	return s.flushAll()
}

// closeLast makes and closes the last cut, if something was handed out or noted since the cut before. It returns why the
// series failed, or nil.
func (s *Series) closeLast(ctx context.Context) error {
	s.mu.Lock()
	begun, failed := s.begun, s.err
	if failed != nil { // maybe at the moment when nothing was in flight: nothing after the failure is committed
		s.mu.Unlock()
		return failed
	}
	offsets := s.takeOffsets()
	s.begun = false
	s.mu.Unlock()
	if !begun {
		return nil
	}
	background := s.closer.Background()
	rows := s.sealRows()
	if background {
		s.sealLayers()
	}
	err := s.settle(ctx, rows, 0)
	if err == nil {
		err = s.commit(ctx, offsets)
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
	return nil
}

// flushAll writes all sealed cuts, so that the next start of this store need not read them from the changelog.
func (s *Series) flushAll() error {
	if err := s.flush(); err != nil {
		s.Fail(err)
	}
	return s.Err()
}
