package store

import (
	"bytes"

	"github.com/lovoo/goka/storage"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// Iterator returns an iterator over a snapshot of the whole store, in the order of keys.
func (s *Store) Iterator() (storage.Iterator, error) { return s.IteratorWithRange(nil, nil) }

// IteratorWithRange returns an iterator over a snapshot of the keys from start to before limit, in their order; a start
// or limit that is nil or empty is no bound. The snapshot costs a copy of the layers' keys in range, not of the base.
//
// Parts of rows are left out: a visitor sees a row once, under its key. The iterator stands before the first pair. Value returns a copy. Goka's documentation and its own code disagree on
// what follows a Seek; both work here: after a Seek that found a pair, Key and Value are that pair's, and Next yields
// that pair too if neither was called since, else the following one. Closing the store ends its iterators with
// ErrClosed. An iterator is for one goroutine.
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

// overlay is what open and sealed layer hold of a range, the open one above; s.mu is held.
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
	inBase  bool // base stands on a pair
	where   place
	sought  bool // Seek found the current pair and nobody has looked at it yet
	err     error
}

// place is where the current pair stands.
type place int

const (
	nowhere place = iota
	inOver        // over[at-1]
	onBase        // where base stands
)

// Next moves to the next pair.
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

// Seek moves to the first pair whose key is not before key, forwards or backwards.
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

// Key is the current pair's key, valid until the iterator moves; nil where there is none.
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

// Value is a copy of the current pair's value; nil where there is none.
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

// Err is what ended the iteration early, if anything did.
func (it *iterator) Err() error { return it.err }

// Release gives the snapshot free; the iterator is at its end then. It may be called again.
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

// step moves to the next row of the merged order; parts of rows are not seen.
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
		order := 0 // of the next pair of over against the one base stands on
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
