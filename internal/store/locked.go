//go:build !windows

package store

import (
	"errors"
	"syscall"
)

// isLocked reports whether LevelDB's lock file is held elsewhere.
func isLocked(err error) bool { return errors.Is(err, syscall.EAGAIN) }
