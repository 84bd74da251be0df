package store

import (
	"bytes"

	"github.com/lovoo/goka/storage"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// Iterator returns an iterator over a snapshot of the whole store, in the order of keys.
func (s *Store) Iterator() (storage.Iterator, error) { return s.IteratorWithRange(nil, nil) }

// IteratorWithRange returns an iterator over a snapshot of the keys in [start, limit), in their order; a nil or empty
// bound is none. The snapshot copies the layers' keys in the range, but not the base.
//
// Parts of rows are left out: a visitor sees a row once, under its key. The iterator starts before the first pair. Value
// returns a copy. Goka's documentation and its code disagree on what follows a Seek; both work here: after a Seek that
// found a pair, Key and Value are that pair's, and Next yields that pair too if neither was called since, otherwise the
// following one. Closing the store ends its iterators with ErrClosed. An iterator must be used by one goroutine only.
func (s *Store) IteratorWithRange(start, limit []byte) (storage.Iterator, error) {
	it := &iterator{store: s, start: bytes.Clone(start)}
	err := s.alive(func() error {
		s.mu.RLock()
		it.over = s.overlay(start, limit)
		it.base = s.base.scan(start, limit)
		s.mu.RUnlock()
		it.started = false
		s.reading.Lock()
		s.iterators[it] = struct{}{}
		s.reading.Unlock()
		return nil
	})
	if err != nil {
		return nil, err
	}
	sortPairs(it.over)
	return it, nil
}

// overlay returns the layers' pairs in a range; the open layer hides the sealed one. s.mu is held.
func (s *Store) overlay(start, limit []byte) []pair {
	var over []pair
	for k, r := range s.open.rows {
		if within(k, start, limit) {
			over = append(over, pair{k, r.value})
		}
	}
	if s.sealed == nil {
		return over
	}
	for k, r := range s.sealed.rows {
		if _, hidden := s.open.rows[k]; !hidden && within(k, start, limit) {
			over = append(over, pair{k, r.value})
		}
	}
	return over
}

// iterator merges the layers' pairs with the base's.
type iterator struct {
	store *Store
	start []byte
	over  []pair // sorted
	base  cursor
	done  bool // released

	at      int  // the next pair of over
	started bool // base was moved
	inBase  bool // base is at a pair
	where   place
	sought  bool // Seek found the current pair, and neither Key nor Value was called since
	err     error
}

// place is where the current pair is.
type place int

const (
	nowhere place = iota
	inOver        // over[at-1]
	onBase        // the current pair of base
)

// Next moves to the next pair. It reports whether there is one.
func (it *iterator) Next() (ok bool) {
	it.live(func() {
		if it.sought {
			it.sought, ok = false, true
			return
		}
		ok = it.step()
	})
	return ok
}

// Seek moves, forwards or backwards, to the first pair whose key is not before key. It reports whether there is one.
func (it *iterator) Seek(key []byte) (ok bool) {
	it.live(func() {
		if bytes.Compare(key, it.start) < 0 {
			key = it.start
		}
		it.at, it.started, it.where = findPair(it.over, key), true, nowhere
		it.inBase = it.base.seek(key)
		ok = it.step()
		it.sought = ok
	})
	return ok
}

// Key returns the current pair's key, valid until the iterator moves, or nil if there is none.
func (it *iterator) Key() (key []byte) {
	it.live(func() {
		it.sought = false
		switch it.where {
		case inOver:
			key = []byte(it.over[it.at-1].key)
		case onBase:
			key = it.base.key()
		}
	})
	return key
}

// Value returns a copy of the current pair's value, or nil if there is none.
func (it *iterator) Value() (value []byte, err error) {
	it.live(func() {
		it.sought = false
		switch it.where {
		case inOver:
			value = copied(it.over[it.at-1].value)
		case onBase:
			value = append([]byte{}, it.base.value()...)
		}
	})
	return value, it.err
}

// Err returns the error that ended the iteration early, or nil.
func (it *iterator) Err() error { return it.err }

// Release releases the snapshot and ends the iteration. It may be called again.
func (it *iterator) Release() {
	it.live(func() {
		it.base.release()
		it.store.reading.Lock()
		delete(it.store.iterators, it)
		it.store.reading.Unlock()
		it.done, it.over, it.where = true, nil, nowhere
	})
}

// live runs f unless the iterator is released or its store closed.
func (it *iterator) live(f func()) {
	if it.done {
		return
	}
	if err := it.store.alive(func() error { f(); return nil }); err != nil {
		it.done, it.err, it.where = true, err, nowhere
	}
}

// step moves to the next row of the merged order and skips parts of rows.
func (it *iterator) step() bool {
	for it.stepAny() {
		if it.where == inOver && !runtimeapi.IsPart(it.over[it.at-1].key) ||
			it.where == onBase && bytes.IndexByte(it.base.key(), 0) < 0 {
			return true
		}
	}
	return false
}

func (it *iterator) stepAny() bool {
	if !it.started || it.where == onBase {
		it.started, it.inBase = true, it.base.next()
	}
	it.where = nowhere
	for {
		order := 0 // of the next pair of over against the current one of base
		switch {
		case it.at == len(it.over) && !it.inBase:
			it.err = it.base.err()
			return false
		case it.at == len(it.over):
			order = 1
		case !it.inBase:
			order = -1
		default:
			order = bytes.Compare([]byte(it.over[it.at].key), it.base.key())
		}
		if order > 0 {
			it.where = onBase
			return true
		}
		if order == 0 { // hidden
			it.inBase = it.base.next()
		}
		it.at++
		if it.over[it.at-1].value != nil {
			it.where = inOver
			return true
		}
	}
}
