package store

import (
	"fmt"
	"path/filepath"
)

// Option is a choice about a store.
type Option func(*Store)

// WithThrough makes a store without a layer: every write counts as committed and reaches the base as soon as its offset
// is set, Seal and Discard do nothing. It is meant for tables that this group does not write: joins, views, standby.
func WithThrough() Option { return func(s *Store) { s.through = true } }

// WithDeadline keeps the due-index of the store's rows. deadline returns the deadline of a row in milliseconds since
// the epoch; it must not keep row. It is called once for every row that is set. Opening a LevelDB does not call it but
// reads back what was stored, except once where the directory was last opened without WithDeadline. A deadline function
// that judges old rows in a new way needs the directory deleted.
func WithDeadline(deadline func(row []byte) (ms int64, ok bool)) Option {
	return func(s *Store) { s.deadline = deadline }
}

// WithShared has Get give out the values themselves, which nobody may change: for tables whose codec leaves the bytes it
// decodes as they are.
func WithShared() Option { return func(s *Store) { s.shared = true } }

// Builder returns the constructor of the stores of one instance, each a LevelDB at "{dir}/{topic}.{partition}". Two
// instances must not share dir. An empty dir gives stores in memory, which start empty.
func Builder(dir string, opts ...Option) func(topic string, partition int32) (*Store, error) {
	return func(topic string, partition int32) (*Store, error) {
		if dir == "" {
			return InMemory(opts...), nil
		}
		return Open(filepath.Join(dir, fmt.Sprintf("%s.%d", topic, partition)), opts...)
	}
}
