package store

import "errors"

var (
	// ErrInUse is returned on opening a path that another process, or another store of this one, has open.
	ErrInUse = errors.New("store: in use")
	// ErrDamaged is returned where LevelDB finds its files damaged, and where the directory is no store of this
	// package. Delete the directory: it is rebuilt from the changelog.
	ErrDamaged = errors.New("store: damaged")
	// ErrNewerFormat is returned on opening a store that a newer version of this module has written.
	ErrNewerFormat = errors.New("store: newer format")
	// ErrDeadline is returned by Set where the function given to WithDeadline panicked.
	ErrDeadline = errors.New("store: deadline of a row panicked")
	// ErrReopen is returned by Reopen for a store that is open or on a disk.
	ErrReopen = errors.New("store: cannot reopen")
	// ErrClosed is returned by every method but Close once the store is closed.
	ErrClosed = errors.New("store: closed")
)
