package kafkatest

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const dirPrefix = "turntable-kafka-"

// sweepAge is the minimum age of a directory that sweep removes. A new one may not be locked by its cluster yet.
const sweepAge = time.Minute

// newDir creates a temporary directory for a cluster, and removes those that killed test binaries have left.
func newDir() (string, error) {
	sweep(os.TempDir(), time.Now())
	dir, err := os.MkdirTemp("", dirPrefix)
	if err != nil {
		return "", fmt.Errorf("kafkatest: %w", err)
	}
	return dir, nil
}

// sweep removes unused directories. It ignores errors, such as those about directories of other users.
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
		if isLocked(node) {
			return true
		}
	}
	return false
}

// nodeDirs returns the existing directories of the nodes of a cluster in dir, in order.
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
