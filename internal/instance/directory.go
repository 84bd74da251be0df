package instance

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/turntable-streams/turntable/internal/store"
)

// holdDirectory locks the group's storage directory for the life of the instance. A second process with the same directory
// fails on startup with store.ErrInUse; without the lock the two would fail in turns. The lock file stays after a
// release: removing it would let two processes lock two files of the same name.
func (inst *Instance) holdDirectory() (release func(), err error) {
	dir := inst.cfg.StorageDir
	if dir == "" || inst.cfg.Graph.GroupTable() == nil {
		return func() {}, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("instance: group %s: storage: %w", inst.group, err)
	}
	file := flock.New(filepath.Join(dir, inst.group+".lock"))
	switch held, err := file.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("instance: group %s: lock storage %s: %w", inst.group, dir, err)
	case !held:
		return nil, fmt.Errorf("instance: group %s: storage: %w: %s", inst.group, store.ErrInUse, dir)
	}
	return func() { _ = file.Unlock() }, nil
}
