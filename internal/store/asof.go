package store

import (
	"fmt"
	"os"
	"time"
)

// AsOf is the time given to the last SetAsOf, in milliseconds; ok is false for a store that never had one. A row that was
// deleted before it is not in the store, however little the changelog still says of the deletion.
func (s *Store) AsOf() (at time.Time, ok bool, err error) {
	err = s.alive(func() error {
		var ms int64
		ms, ok, err = s.base.asOf()
		at = time.UnixMilli(ms)
		return err
	})
	return at, ok, err
}

// SetAsOf stores that the changelog ended before the offset end at a time, if everything before end is in the base. It
// reports whether it is; if not, it stores nothing, and may be called again after a Flush. An empty store is as of the
// time at which the reading of its changelog begins, with end 0.
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

// removed is the end of the name that the directory of a store has while it is removed.
const removed = ".removed"

// Remove deletes the directory of a closed store. A crash in the middle leaves the whole store or none: what is left of
// the files is deleted by the next Open of path.
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
