package instance

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/turntable-streams/turntable/internal/store"
)

// holdDirectory locks the group's storage directory for the life of the unit. A second process with the same directory
// fails on startup with store.ErrInUse; without the lock the two would fail in turns. The lock file stays after a
// release: removing it would let two processes lock two files of the same name.
func (u *Unit) holdDirectory() (release func(), err error) {
	dir := u.cfg.StorageDir
	if dir == "" || u.cfg.Graph.GroupTable() == nil {
		return func() {}, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("unit: group %s: storage: %w", u.group, err)
	}
	file := flock.New(filepath.Join(dir, u.group+".lock"))
	switch held, err := file.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("unit: group %s: lock storage %s: %w", u.group, dir, err)
	case !held:
		return nil, fmt.Errorf("unit: group %s: storage: %w: %s", u.group, store.ErrInUse, dir)
	}
	return func() { _ = file.Unlock() }, nil
}
