package store

import (
	"fmt"
	"path/filepath"
)

// Option configures a store.
type Option func(*Store)

// WithThrough makes a store without layers, for tables that this group does not write: joins, views, standby. Every write
// counts as committed. Seal does nothing.
func WithThrough() Option { return func(s *Store) { s.through = true } }

// WithDeadline keeps the due-index of the store's rows. deadline returns the deadline of a row in milliseconds since the
// epoch; it must not keep row. It is called once for every row that is set. Opening a LevelDB reads the stored deadlines
// and calls deadline only if the directory was last opened without WithDeadline. Delete the directory if deadline returns
// something else for old rows than it used to.
func WithDeadline(deadline func(row []byte) (ms int64, ok bool)) Option {
	return func(s *Store) { s.deadline = deadline }
}

// WithShared makes Get return the stored values without copying them. Callers must not change them: use it only for tables
// whose codec does not change the bytes that it decodes.
func WithShared() Option { return func(s *Store) { s.shared = true } }

// Builder returns a function that opens the stores of one instance, each a LevelDB at "{dir}/{topic}.{partition}". Two
// instances must not share dir. With an empty dir the stores are in memory and start empty.
func Builder(dir string, opts ...Option) func(topic string, partition int32) (*Store, error) {
	return func(topic string, partition int32) (*Store, error) {
		if dir == "" {
			return InMemory(opts...), nil
		}
		return Open(filepath.Join(dir, fmt.Sprintf("%s.%d", topic, partition)), opts...)
	}
}
