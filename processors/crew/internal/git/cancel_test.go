package git

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A host that stops ends its calls of git. One that holds the lock of the index removes it: a lock that stays would make every later
// commit of the repository fail.
func TestCancelledCallLeavesNoLock(t *testing.T) {
	f := newFixture(t, "a.txt")
	begun, index := filepath.Join(t.TempDir(), "begun"), filepath.Join(f.dir, ".git", "index.lock")
	f.git("config", "filter.slow.clean", "touch '"+begun+"'; sleep 3; cat")
	f.write(".gitattributes", "*.txt filter=slow\n")
	f.write("a.txt", "mine\n")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := worktree{dir: f.dir}.git(ctx, nil, "add", "a.txt")
		ended <- err
	}()
	exists := func(path string) bool { _, err := os.Stat(path); return err == nil }
	require.Eventually(t, func() bool { return exists(begun) }, time.Minute, time.Millisecond)
	require.True(t, exists(index))
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.False(t, exists(index))
}
