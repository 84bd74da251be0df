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

// hold is a lock on a node's directory, by a file in it. The node inherits the open file and with it the lock, so that
// the directory is locked while either its starter or its node runs, even if one is killed. The process id in the file is
// therefore valid: while the lock is held and the starter has ended, it is that of the node.
type hold struct{ file *os.File }

func holdPath(dir string) string { return filepath.Join(dir, "lock") }

// takeHold does not wait. The directory must exist.
func takeHold(dir string) (*hold, error) {
	f, err := os.OpenFile(holdPath(dir), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("kafkatest: %w", err)
	}
	if err = tryHold(f); err == nil {
		return &hold{file: f}, nil
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

// held reports whether a process holds the directory.
func held(dir string) bool {
	f, err := os.OpenFile(holdPath(dir), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return tryHold(f) != nil
}

// owner is the process id and port of the node, as the holder of a directory wrote them.
type owner struct{ pid, port int }

// clear removes the owner before a new one is written, so that a dead process is not mistaken for the holder.
func (h *hold) clear() error { return h.file.Truncate(0) }

func (h *hold) write(o owner) error {
	_, err := h.file.WriteAt(fmt.Appendf(nil, "%d %d\n", o.pid, o.port), 0)
	return err
}

func (h *hold) release() error { return h.file.Close() }

func readOwner(dir string) (owner, error) {
	text, err := os.ReadFile(holdPath(dir))
	if err != nil {
		return owner{}, fmt.Errorf("kafkatest: %w", err)
	}
	words := strings.Fields(string(text))
	if len(words) != 2 {
		return owner{}, fmt.Errorf("kafkatest: %s names no process and port", holdPath(dir))
	}
	pid, pidErr := strconv.Atoi(words[0])
	number, portErr := strconv.Atoi(words[1])
	if err = errors.Join(pidErr, portErr); err != nil {
		return owner{}, fmt.Errorf("kafkatest: %s: %w", holdPath(dir), err)
	}
	return owner{pid: pid, port: number}, nil
}
