package store

import (
	"errors"
	"fmt"
	"sync"

	"github.com/lovoo/goka/storage"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/internal/timer"
)

// Layered is the interface of a store that the runtime uses beyond storage.Storage.
type Layered interface {
	storage.Storage
	Seal() bool
	Flush() error
	Heavy() bool
	Discard() error
}

var _ Layered = (*Store)(nil)

// Store is a storage.Storage with layers. It is safe for concurrent use. Keys may be any bytes. A nil value deletes the
// key, as in the changelog; an empty value is a value. Iterators return copies, and so does Get unless the store is
// WithShared.
type Store struct {
	path     string // "" in memory
	through  bool
	shared   bool
	deadline func([]byte) (int64, bool)
	due      *timer.Index
	base     backing

	// life is read-locked by every method, and write-locked by Close.
	life   sync.RWMutex
	closed bool

	mu        sync.RWMutex // the fields below
	recovered bool
	open      *layer
	sealed    *layer // of sealed cuts that are not in the base; nil: there are none
	flushing  bool   // sealed is being written
	spare     *layer // an empty one, or nil
	flushed   int64  // offset of the base
	clean     *clean // nil if the base is in memory, or the store is not recovered or has no layers

	writing sync.Mutex // one writer of the base at a time

	reading   sync.Mutex // iterators
	iterators map[*iterator]struct{}
}

// InMemory returns an empty store in memory.
func InMemory(opts ...Option) *Store {
	s := newStore("", opts)
	s.base = newMemory()
	return s
}

// Open opens or creates the LevelDB at path. It blocks while LevelDB replays its journal and the due-index is read. Its
// errors name path and wrap ErrInUse, ErrDamaged, ErrNewerFormat or an error of the file system.
func Open(path string, opts ...Option) (*Store, error) {
	s := newStore(path, opts)
	base, err := openLevel(path, s.deadline, s.due)
	if err != nil {
		return nil, err
	}
	s.base = base
	if s.flushed, err = base.offset(); err != nil {
		return nil, errors.Join(err, base.close())
	}
	return s, nil
}

// Reopen returns an open store with the rows that the closed in-memory store s had at its last flush, and with its
// options; s must not be used afterwards. The error wraps ErrReopen if s is open, has a path (open its directory instead)
// or was reopened before.
func (s *Store) Reopen() (*Store, error) {
	s.life.Lock()
	defer s.life.Unlock()
	base, ok := s.base.(*memory)
	if !s.closed || !ok {
		return nil, fmt.Errorf("%w: only a closed store in memory can be reopened", ErrReopen)
	}
	s.base = nil
	again := newStore("", nil)
	again.through, again.shared, again.deadline = s.through, s.shared, s.deadline
	again.base, again.flushed = base, base.last
	if again.deadline == nil {
		return again, nil
	}
	for key, value := range base.rows {
		if runtimeapi.IsPart(key) {
			continue
		}
		ms, ok, err := dueOf(again.deadline, value)
		if err != nil {
			return nil, err
		}
		if ok {
			again.due.Set(key, ms)
		}
	}
	return again, nil
}

func newStore(path string, opts []Option) *Store {
	s := &Store{
		path: path, due: timer.NewIndex(), open: newLayer(), flushed: noOffset, iterators: map[*iterator]struct{}{},
	}
	for _, o := range opts {
		o(s)
	}
	return s
}

// Path returns the directory of the store, or "" if it is in memory.
func (s *Store) Path() string { return s.path }

// Due returns the index of the deadlines of the store's current rows, the open layer included. It is empty without
// WithDeadline, and complete once the store is recovered.
func (s *Store) Due() *timer.Index { return s.due }

// Open does nothing: a Store is open when it is created. It returns ErrClosed after Close.
func (s *Store) Open() error { return s.alive(func() error { return nil }) }

// Has reports whether a key has a value.
func (s *Store) Has(key string) (has bool, err error) {
	err = s.alive(func() error {
		s.mu.RLock()
		r, ok := s.layered(key)
		s.mu.RUnlock()
		if ok {
			has = r.value != nil
			return nil
		}
		has, err = s.base.has(key)
		return err
	})
	return has, err
}

// Get returns a key's value, or nil if it has none. The value is a copy unless the store is WithShared.
func (s *Store) Get(key string) ([]byte, error) {
	s.life.RLock()
	defer s.life.RUnlock()
	if s.closed {
		return nil, s.named(ErrClosed)
	}
	value, err := s.find(key)
	if !s.shared {
		value = copied(value)
	}
	return value, err
}

// find looks a key up, in the layers first. It returns the stored bytes, not a copy.
func (s *Store) find(key string) ([]byte, error) {
	s.mu.Lock()
	if r, ok := s.layered(key); ok {
		s.mu.Unlock()
		return r.value, nil
	}
	if s.clean == nil {
		s.mu.Unlock()
		value, _, err := s.base.get(key)
		return value, err
	}
	value, ok := s.clean.get(key)
	writes := s.clean.writes
	s.mu.Unlock()
	if ok {
		return value, nil
	}
	value, ok, err := s.base.get(key)
	if ok {
		s.mu.Lock()
		s.clean.read(key, value, writes)
		s.mu.Unlock()
	}
	return value, err
}

// Set writes a value; nil deletes the key. A recovered store keeps the value: the caller must not change it afterwards.
// Before MarkRecovered, and in a store opened WithThrough, Set copies the value, since a value read from a changelog is a
// slice of a large response.
func (s *Store) Set(key string, value []byte) error {
	s.mu.RLock()
	keep := !s.committed()
	s.mu.RUnlock()
	if !keep {
		value = copied(value)
	}
	return s.write(key, row{value: value})
}

// Delete deletes a key, if it exists.
func (s *Store) Delete(key string) error { return s.write(key, row{}) }

// GetOffset returns the highest changelog offset that was set, also before the store was last opened, or def if there is
// none.
func (s *Store) GetOffset(def int64) (offset int64, err error) {
	err = s.alive(func() error {
		s.mu.RLock()
		defer s.mu.RUnlock()
		offset = s.newest()
		if offset == noOffset {
			offset = def
		}
		return nil
	})
	return offset, err
}

// SetOffset records that the changelog up to offset is in the store. An offset lower than before changes nothing. It is
// stored in the same batch as the rows that it covers, never before them.
func (s *Store) SetOffset(offset int64) error {
	return s.alive(func() error {
		s.mu.Lock()
		if offset > s.newest() {
			s.open.offset = offset
		}
		spill := s.committed() && (s.recovered || s.open.full(1))
		s.mu.Unlock()
		if spill {
			return s.spill()
		}
		return nil
	})
}

func (s *Store) write(key string, r row) error {
	if s.deadline != nil && r.value != nil && !runtimeapi.IsPart(key) {
		var err error
		if r.due, r.timed, err = dueOf(s.deadline, r.value); err != nil {
			return err
		}
	}
	return s.alive(func() error {
		s.mu.Lock()
		s.open.put(key, r)
		s.index(key, r)
		// The offset that covers this row is set next: a limit of two batches lets it get into the same batch.
		full := s.committed() && s.open.full(2)
		s.mu.Unlock()
		if full {
			return s.spill()
		}
		return nil
	})
}

// index updates the due-index for a row; s.mu is held, so that the last writer of a row decides.
func (s *Store) index(key string, r row) {
	switch {
	case s.deadline == nil, runtimeapi.IsPart(key):
	case r.timed:
		s.due.Set(key, r.due)
	default:
		s.due.Remove(key)
	}
}

// layered looks a key up in the layers; s.mu is held.
func (s *Store) layered(key string) (row, bool) {
	r, ok := s.open.rows[key]
	if !ok && s.sealed != nil {
		r, ok = s.sealed.rows[key]
	}
	return r, ok
}

// committed reports whether writes are committed by definition at this time; s.mu is held.
func (s *Store) committed() bool { return s.through || !s.recovered }

// newest returns the highest offset of base and layers; s.mu is held.
func (s *Store) newest() int64 {
	n := max(s.flushed, s.open.offset)
	if s.sealed != nil {
		n = max(n, s.sealed.offset)
	}
	return n
}

// alive runs f unless the store is closed, and delays Close until f has returned.
func (s *Store) alive(f func() error) error {
	s.life.RLock()
	defer s.life.RUnlock()
	if s.closed {
		return s.named(ErrClosed)
	}
	return f()
}

func (s *Store) named(err error) error {
	if s.path == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, s.path)
}

func dueOf(deadline func([]byte) (int64, bool), row []byte) (ms int64, ok bool, err error) {
	defer func() {
		if recover() != nil { // its text may quote the row
			err = ErrDeadline
		}
	}()
	ms, ok = deadline(row)
	return ms, ok, nil
}

// copied copies a value. It keeps the difference between nil and an empty value.
func copied(v []byte) []byte {
	if v == nil {
		return nil
	}
	return append(make([]byte, 0, len(v)), v...)
}
