package kafkatest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ErrInUse is wrapped by the error of a start when another cluster uses the directory.
var ErrInUse = errors.New("kafkatest: directory is in use")

// dirLock is a lock on a node's directory: a locked file in it. The node inherits the open file and therefore the lock, so
// that the directory is locked while its starter or its node runs, even if the other one was killed. The process ID in the
// file is therefore valid: if the lock is held and the starter has ended, it is that of the node.
type dirLock struct{ file *os.File }

func lockPath(dir string) string { return filepath.Join(dir, "lock") }

// lockDir locks a directory, which must exist. It does not wait: if another process has the lock, it returns ErrInUse.
func lockDir(dir string) (*dirLock, error) {
	f, err := os.OpenFile(lockPath(dir), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("kafkatest: %w", err)
	}
	if err = tryLock(f); err == nil {
		return &dirLock{file: f}, nil
	}
	f.Close()
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, fmt.Errorf("kafkatest: a cluster on this system: %w", err)
	}
	if o, ownerErr := readOwner(dir); ownerErr == nil {
		return nil, fmt.Errorf("%w: %s, by process %d", ErrInUse, dir, o.pid)
	}
	return nil, fmt.Errorf("%w: %s", ErrInUse, dir)
}

// isLocked reports whether a process has locked the directory.
func isLocked(dir string) bool {
	f, err := os.OpenFile(lockPath(dir), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return tryLock(f) != nil
}

// owner is the process ID and port of the node, as stored in the lock file.
type owner struct{ pid, port int }

// clear removes the old owner before a new one is written, so that an ended process is not mistaken for the owner.
func (h *dirLock) clear() error { return h.file.Truncate(0) }

func (h *dirLock) write(o owner) error {
	_, err := h.file.WriteAt(fmt.Appendf(nil, "%d %d\n", o.pid, o.port), 0)
	return err
}

func (h *dirLock) release() error { return h.file.Close() }

func readOwner(dir string) (owner, error) {
	text, err := os.ReadFile(lockPath(dir))
	if err != nil {
		return owner{}, fmt.Errorf("kafkatest: %w", err)
	}
	words := strings.Fields(string(text))
	if len(words) != 2 {
		return owner{}, fmt.Errorf("kafkatest: %s does not contain a process ID and a port", lockPath(dir))
	}
	pid, pidErr := strconv.Atoi(words[0])
	number, portErr := strconv.Atoi(words[1])
	if err = errors.Join(pidErr, portErr); err != nil {
		return owner{}, fmt.Errorf("kafkatest: %s: %w", lockPath(dir), err)
	}
	return owner{pid: pid, port: number}, nil
}
