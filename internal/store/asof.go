package store

import (
	"fmt"
	"os"
	"time"
)

// AsOf returns the time given to the last SetAsOf, with millisecond precision; ok is false if there was none. A row that
// was deleted before that time is not in the store, even if compaction has removed its tombstone.
func (s *Store) AsOf() (at time.Time, ok bool, err error) {
	err = s.alive(func() error {
		var ms int64
		ms, ok, err = s.base.asOf()
		at = time.UnixMilli(ms)
		return err
	})
	return at, ok, err
}

// SetAsOf stores the time at which the changelog ended before the offset end, if everything before end is in the base. It
// reports whether that is so; if not, it stores nothing, and may be called again after a Flush. For an empty store, give
// the time at which the reading of its changelog begins, and end 0.
func (s *Store) SetAsOf(at time.Time, end int64) (reached bool, err error) {
	err = s.alive(func() error {
		s.mu.RLock()
		reached = s.flushed >= end-1
		s.mu.RUnlock()
		if !reached {
			return nil
		}
		return s.base.setAsOf(at.UnixMilli())
	})
	return reached && err == nil, err
}

// Empty reports whether the base has neither rows nor an offset.
func (s *Store) Empty() (empty bool, err error) {
	err = s.alive(func() error {
		offset, err := s.base.offset()
		if err != nil || offset != noOffset {
			return err
		}
		rows := s.base.scan(nil, nil)
		defer rows.release()
		empty = !rows.next()
		return rows.err()
	})
	return empty && err == nil, err
}

// removed is the suffix of a store's directory while it is being removed.
const removed = ".removed"

// Remove deletes the directory of a closed store. After a crash in the middle, path holds either the complete store or
// nothing; the next Open of path deletes the remaining files.
func Remove(path string) error {
	err := os.RemoveAll(path + removed)
	if err == nil {
		err = os.Rename(path, path+removed)
	}
	if err == nil {
		err = os.RemoveAll(path + removed)
	}
	if err != nil {
		return fmt.Errorf("store: remove %s: %w", path, err)
	}
	return nil
}
