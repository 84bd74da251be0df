package git

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/turntable-streams/turntable/internal/crewbody"
)

func (f *fixture) dirty(paths ...string) crewbody.Receipt {
	f.t.Helper()
	return Dirty(f.t.Context(), crewbody.Dirty{Cwd: f.dir, Paths: paths}, "repository/r/1")
}

func TestChangesOfEveryKindAreDirty(t *testing.T) {
	f := newFixture(t, "clean.txt", "unstaged.txt", "staged.txt", "both.txt", "gone.txt", "removed.txt", "dir/x.txt", "dirt", "-x")
	f.write(".git/info/exclude", "*.log\n")
	require.Equal(t, crewbody.Receipt{ActionID: "repository/r/1"}, f.dirty("clean.txt", "dir/*", "none.txt", "no/such/*", "-x"))
	for _, name := range []string{"unstaged.txt", "staged.txt", "both.txt", "untracked.txt", "dir/new/y.txt", "x.log", "dirt", "-x"} {
		f.write(name, "changed\n")
	}
	f.git("add", "staged.txt", "both.txt")
	f.write("both.txt", "again\n")
	f.remove("gone.txt")
	f.git("rm", "--quiet", "removed.txt")
	for _, name := range []string{"unstaged.txt", "staged.txt", "both.txt", "gone.txt", "removed.txt", "untracked.txt", "-x"} {
		require.Equal(t, []string{name}, f.dirty(name).Dirty)
	}
	require.Equal(t, []string{"dir/new/y.txt"}, f.dirty("dir/*").Dirty)
	for _, name := range []string{"clean.txt", "x.log", "dir", "*", ".", "*.txt"} {
		require.Empty(t, f.dirty(name).Dirty, name)
	}
	require.Equal(t, []string{"-x"}, f.dirty("-x", "clean.txt").Dirty)
}

func TestDirtyFailsWhereGitDoes(t *testing.T) {
	f := newFixture(t, "a.txt")
	require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(f.dir, "link")))
	require.True(t, f.dirty("link/x").Failed)
	require.True(t, f.dirty("../x").Failed)
	f.remove(".git")
	r := f.dirty("a.txt")
	require.True(t, r.Failed)
	require.Contains(t, r.Error, "not a git repository")
}

func TestFilesOfAFirstCommitAreDirty(t *testing.T) {
	f := newFixture(t)
	f.write("a.txt", "x\n")
	require.Equal(t, []string{"a.txt"}, f.dirty("a.txt").Dirty)
}
