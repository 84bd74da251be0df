package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// ErrLocked is wrapped by the error of Start when another broker uses the directory.
var ErrLocked = errors.New("embedded: directory is in use")

// lockFile is in the directory of the broker's files. A release does not remove it: otherwise two brokers could lock two
// files of the same name.
const lockFile = "turntable.lock"

// lock is an exclusive lock of a directory. The zero lock, of a broker in memory, locks nothing. The operating system
// releases it when the process ends, even if it is killed.
type lock struct{ file *flock.Flock }

// acquire locks a directory. It does not wait for another broker that uses it.
func acquire(dir string) (*lock, error) {
	if dir == "" {
		return &lock{}, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	file := flock.New(filepath.Join(dir, lockFile))
	ok, err := file.TryLock()
	if err != nil {
		return nil, fmt.Errorf("embedded: lock directory %s: %w", dir, err)
	}
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrLocked, dir)
	}
	return &lock{file: file}, nil
}

func (l *lock) release() error {
	if l.file == nil {
		return nil
	}
	return l.file.Unlock()
}
