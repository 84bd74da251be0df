package git

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestK01_OnlyTheHeldFilesAreCommitted(t *testing.T) {
	f := newFixture(t, "a.txt", "b.txt", "c.txt", "src/x.txt", "srcx.txt", "gone.txt")
	f.write("a.txt", "mine\n")
	f.remove("gone.txt")
	f.write("src/new/deep.txt", "mine\n")
	f.write("src/x.txt", "mine\n")
	f.write("b.txt", "staged by another\n")
	f.git("add", "b.txt")
	f.write("c.txt", "dirty\n")
	f.write("srcx.txt", "dirty\n")
	f.write("unknown.txt", "of another\n")

	r := f.commit("repository/r/1", []string{"a.txt", "src/*", "gone.txt"}, []string{"a.txt", "gone.txt", "src/new/deep.txt", "src/x.txt"})
	require.Empty(t, r.Missing)
	require.Equal(t, []string{"M  b.txt", " M c.txt", " M srcx.txt", "?? unknown.txt"}, f.status())
	require.Equal(t, []string{"b.txt", "c.txt", "srcx.txt", "unknown.txt"}, r.Others)
	require.Equal(t, "staged by another\n", f.git("show", ":b.txt"), "what another agent has staged is kept")
	require.Equal(t, "Developer (a1b2c3d4) <agent-a1b2c3d4@turntable.invalid>\n", f.git("log", "-1", "--format=%an <%ae>"))
	require.Equal(t, "Change things\n\nTurntable-Commit: repository/r/1 7\n", f.git("log", "-1", "--format=%B")[:len("Change things\n\nTurntable-Commit: repository/r/1 7\n")])
	require.Equal(t, "[main "+r.Commit[:7]+"] Change things", r.Summary)
}

// What an agent has staged itself is not what counts, but what is in its files.
func TestStagedAndUnstagedChangesOfOneFileAreCommittedTogether(t *testing.T) {
	f := newFixture(t, "a.txt")
	f.write("a.txt", "staged\n")
	f.git("add", "a.txt")
	f.write("a.txt", "later\n")
	f.commit("1", []string{"a.txt"}, []string{"a.txt"})
	require.Equal(t, "later\n", f.git("show", "HEAD:a.txt"))
	require.Empty(t, f.status())
}

func TestFirstCommitOfARepository(t *testing.T) {
	f := newFixture(t)
	f.write("a.txt", "x\n")
	f.write("b.txt", "x\n")
	f.commit("1", []string{"a.txt"}, []string{"a.txt"})
	require.Equal(t, []string{"?? b.txt"}, f.status())
}

func TestK05_HeldPathsThatDidNotChangeAreNamedAndStopNothing(t *testing.T) {
	f := newFixture(t, "a.txt", "same.txt", "empty/.keep")
	f.write(".git/info/exclude", "*.log\n")
	f.write("a.txt", "mine\n")
	f.write("x.log", "ignored\n")
	require.NoError(t, os.Mkdir(filepath.Join(f.dir, "void"), 0o755))
	r := f.commit("1", []string{"never.txt", "a.txt", "same.txt", "void/*", "no/such/*", "x.log", "empty/*"}, []string{"a.txt"})
	require.Equal(t, []string{"never.txt", "same.txt", "void/*", "no/such/*", "x.log", "empty/*"}, r.Missing)
	f.write("a.txt", "again\n")
	require.Empty(t, f.commit("2", []string{"a.txt"}, []string{"a.txt"}).Missing)

	// What was left out cannot be listed without an index that git can read. The commit is made nevertheless.
	f.write("a.txt", "third\n")
	f.write(".git/index", "no index")
	r = Commit(t.Context(), f.request("a.txt", "same.txt"), "3")
	require.False(t, r.Failed, r.Error)
	require.Contains(t, r.Error, "the index was not updated")
	require.Equal(t, []string{"same.txt"}, r.Missing)
	require.Empty(t, r.Others)
	f.remove(".git/index")
	require.Equal(t, []string{"a.txt"}, f.filesOf(r.Commit))
}

func TestCommitWithoutChangesFails(t *testing.T) {
	f := newFixture(t, "a.txt")
	require.Equal(t, "nothing to commit", f.refused("a.txt", "b.txt"))
	require.Equal(t, "nothing to commit", f.refused())
}

func TestDirectoryWithoutAPatternIsNoFile(t *testing.T) {
	f := newFixture(t, "src/a.txt")
	f.write("src/a.txt", "of another\n")
	require.Equal(t, "nothing to commit", f.refused("src"))
	require.Equal(t, "nothing to commit", f.refused("."))
	f.remove("src")
	f.write("src", "a file now\n")
	require.Contains(t, f.refused("src"), `"src/a.txt" too, which is not locked`)
	f.commit("1", []string{"src", "src/*"}, []string{"src", "src/a.txt"})
}

func TestPathsBehindSymbolicLinksAreRefused(t *testing.T) {
	f := newFixture(t, "a.txt", "real/b.txt")
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret.txt"), nil, 0o644))
	require.NoError(t, os.Symlink(outside, filepath.Join(f.dir, "link")))
	require.NoError(t, os.Symlink("real", filepath.Join(f.dir, "alias")))
	for _, path := range []string{"link/secret.txt", "link/*", "link/none/*", "alias/b.txt", "alias/*"} {
		require.Contains(t, f.refused(path), "is behind the symbolic link")
	}
	for _, path := range []string{"../x", "/etc/passwd", "a/../../x", ""} {
		require.Contains(t, f.refused(path), "is no path in the repository", path)
	}
	f.commit("1", []string{"link"}, []string{"link"}) // the link itself
}

func TestMergesAndSparseCheckoutsAreRefused(t *testing.T) {
	f := newFixture(t, "a.txt")
	f.write("a.txt", "mine\n")
	f.git("config", "core.sparseCheckout", "true")
	require.Contains(t, f.refused("a.txt"), "sparse checkout")
	f.git("config", "core.sparseCheckout", "false")
	f.write(".git/MERGE_HEAD", f.git("rev-parse", "HEAD"))
	require.Contains(t, f.refused("a.txt"), "merge")
}

func TestDirectoryWithoutARepositoryFails(t *testing.T) {
	f := newFixture(t)
	f.remove(".git")
	r := Commit(t.Context(), f.request("a.txt"), "1")
	require.True(t, r.Failed)
	require.Contains(t, r.Error, "not a git repository")
}
