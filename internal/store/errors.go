package store

import "errors"

var (
	// ErrInUse is returned on opening a path that another process, or another store of this process, has open.
	ErrInUse = errors.New("store: in use")
	// ErrDamaged is returned if LevelDB finds its files damaged, or if the directory is not a store of this package. Delete
	// the directory: it is rebuilt from the changelog.
	ErrDamaged = errors.New("store: damaged")
	// ErrNewerFormat is returned on opening a store that a newer version of this module has written.
	ErrNewerFormat = errors.New("store: newer format")
	// ErrDeadline is returned if the function given to WithDeadline panics. The panic value may quote the row, so the error
	// does not contain it.
	ErrDeadline = errors.New("store: deadline of a row panicked")
	// ErrReopen is returned by Reopen for a store that is open or on a disk.
	ErrReopen = errors.New("store: cannot reopen")
	// ErrClosed is returned by the methods that read or write the store once it is closed.
	ErrClosed = errors.New("store: closed")
)
