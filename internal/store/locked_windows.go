package store

import (
	"errors"
	"syscall"
)

// isLocked reports whether LevelDB's lock file is held elsewhere: ERROR_SHARING_VIOLATION.
func isLocked(err error) bool { return errors.Is(err, syscall.Errno(32)) }
