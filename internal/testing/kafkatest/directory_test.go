package kafkatest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSweepRemovesOnlyUnusedDirectories(t *testing.T) {
	root := t.TempDir()
	abandoned, busy := nodeIn(t, root, dirPrefix+"abandoned"), nodeIn(t, root, dirPrefix+"busy")
	foreign := nodeIn(t, root, "else")
	require.NoError(t, os.WriteFile(lockPath(abandoned), nil, 0o644))
	h, err := lockDir(busy)
	require.NoError(t, err)

	sweep(root, time.Now())
	require.DirExists(t, abandoned, "its cluster may be about to lock it")

	later := time.Now().Add(2 * sweepAge)
	sweep(root, later)
	require.NoDirExists(t, filepath.Dir(abandoned))
	require.DirExists(t, busy)
	require.DirExists(t, foreign)

	require.NoError(t, h.release())
	sweep(root, later)
	require.NoDirExists(t, filepath.Dir(busy))
}

func TestDirectoryIsLockedAndTheErrorNamesItsOwner(t *testing.T) {
	dir := t.TempDir()
	h, err := lockDir(dir)
	require.NoError(t, err)
	_, err = lockDir(dir)
	require.ErrorIs(t, err, ErrInUse)
	require.ErrorContains(t, err, dir)

	require.NoError(t, h.write(owner{pid: 4321, port: 9092}))
	_, err = lockDir(dir)
	require.ErrorIs(t, err, ErrInUse)
	require.ErrorContains(t, err, "process 4321")

	require.NoError(t, h.clear())
	require.NoError(t, h.write(owner{pid: 1, port: 2}))
	o, err := readOwner(dir)
	require.NoError(t, err)
	require.Equal(t, owner{pid: 1, port: 2}, o)

	require.NoError(t, h.release())
	require.False(t, isLocked(dir))
}

func TestClusterIDIsStoredInTheDirectory(t *testing.T) {
	dir := t.TempDir()
	first, err := clusterID(dir)
	require.NoError(t, err)
	require.Regexp(t, `^[A-Za-z0-9_][A-Za-z0-9_-]{21}$`, first)
	again, err := clusterID(dir)
	require.NoError(t, err)
	require.Equal(t, first, again)
	other, err := clusterID(t.TempDir())
	require.NoError(t, err)
	require.NotEqual(t, first, other)
}

func nodeIn(t *testing.T, root, name string) string {
	t.Helper()
	dir := nodeDir(filepath.Join(root, name), 1)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	return dir
}
