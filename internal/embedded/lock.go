package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// ErrLocked is wrapped by the error of Start for a directory that another broker has.
var ErrLocked = errors.New("embedded: directory is in use")

// lockFile stands beside the broker's files. It stays after a release: removing it would let two brokers lock two files
// of the same name.
const lockFile = "turntable.lock"

// lock is the right to a directory; the zero lock, of a broker in memory, is the right to nothing. The operating system
// drops it with the process, however that ends.
type lock struct{ file *flock.Flock }

// acquire does not wait: whoever is there, is there to stay.
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
