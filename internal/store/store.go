package store

import (
	"errors"
	"fmt"
	"sync"

	"github.com/lovoo/goka/storage"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

var _ storage.Storage = (*Store)(nil)

// Store is a storage.Storage with layers. It is safe for concurrent use. Keys may be any bytes. A nil value deletes the
// key, as in the changelog; an empty value is a value. Iterators return copies, and so does Get unless the store is
// WithShared.
type Store struct {
	path     string // "" in memory
	through  bool
	shared   bool
	deadline func([]byte) (int64, bool)
	due      *DueIndex
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
		path: path, due: NewDueIndex(), open: newLayer(), flushed: noOffset, iterators: map[*iterator]struct{}{},
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
func (s *Store) Due() *DueIndex { return s.due }

// Open does nothing: a Store is open when it is created. It returns ErrClosed after Close.
func (s *Store) Open() error { return s.alive(func() error { return nil }) }

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
