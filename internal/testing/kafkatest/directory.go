package kafkatest

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const dirPrefix = "turntable-kafka-"

// sweepAge protects a directory whose cluster has not locked it yet from a sweep.
const sweepAge = time.Minute

// newDir makes a cluster's directory among the system's temporary ones, and removes those that dead test binaries left.
func newDir() (string, error) {
	sweep(os.TempDir(), time.Now())
	dir, err := os.MkdirTemp("", dirPrefix)
	if err != nil {
		return "", fmt.Errorf("kafkatest: %w", err)
	}
	return dir, nil
}

// sweep is best effort: it skips directories that it cannot remove, such as those of another user.
func sweep(root string, now time.Time) {
	dirs, err := filepath.Glob(filepath.Join(root, dirPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		stat, err := os.Stat(dir)
		if err == nil && now.Sub(stat.ModTime()) > sweepAge && !inUse(dir) {
			_ = os.RemoveAll(dir)
		}
	}
}

func inUse(dir string) bool {
	for _, node := range nodeDirs(dir) {
		if held(node) {
			return true
		}
	}
	return false
}

// nodeDirs are the directories of the nodes that a cluster in dir has, or had, in order.
func nodeDirs(dir string) []string {
	var dirs []string
	for id := 1; ; id++ {
		node := nodeDir(dir, id)
		if _, err := os.Stat(node); err != nil {
			return dirs
		}
		dirs = append(dirs, node)
	}
}

func nodeDir(dir string, id int) string { return filepath.Join(dir, fmt.Sprintf("node-%d", id)) }
