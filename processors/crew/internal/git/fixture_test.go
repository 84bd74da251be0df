package git

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/turntable-streams/turntable/internal/crewbody"
)

// fixture is a repository with a commit.
type fixture struct {
	t   *testing.T
	dir string
}

func newFixture(t *testing.T, files ...string) *fixture {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null") // of the test's own calls; those of the package drop it
	t.Setenv("HOME", t.TempDir())
	f := &fixture{t: t, dir: t.TempDir()}
	f.git("init", "--quiet", "--initial-branch=main")
	for _, name := range files {
		f.write(name, "first\n")
	}
	if len(files) > 0 {
		f.git("add", "--all")
		f.git("-c", "user.name=Mira", "-c", "user.email=mira@example.com", "commit", "--quiet", "-m", "Start")
	}
	return f
}

func (f *fixture) git(args ...string) string {
	f.t.Helper()
	c := exec.CommandContext(f.t.Context(), "git", args...)
	c.Dir = f.dir
	out, err := c.CombinedOutput()
	require.NoError(f.t, err, "git %v: %s", args, out)
	return string(out)
}

func (f *fixture) write(name, text string) {
	f.t.Helper()
	name = filepath.Join(f.dir, name)
	require.NoError(f.t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(f.t, os.WriteFile(name, []byte(text), 0o644))
}

func (f *fixture) remove(name string) {
	f.t.Helper()
	require.NoError(f.t, os.RemoveAll(filepath.Join(f.dir, name)))
}

// filesOf returns the paths that a commit changes.
func (f *fixture) filesOf(commit string) []string {
	f.t.Helper()
	return split([]byte(f.git("diff-tree", "-r", "-z", "--root", "--no-commit-id", "--name-only", "--no-renames", commit)))
}

// status returns the status of the work tree, one path a line.
func (f *fixture) status() []string {
	f.t.Helper()
	return split([]byte(f.git("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")))
}

func (f *fixture) commits() int { return len(strings.Fields(f.git("rev-list", "--all"))) }

func (f *fixture) request(paths ...string) crewbody.Commit {
	return crewbody.Commit{
		AgentID: "a1b2c3d4-0000-4000-8000-000000000001", Cwd: f.dir, Paths: paths, Message: "Change things", Author: "Developer (a1b2c3d4)",
		Fence: 7,
	}
}

// commit commits paths under an action, which must succeed with exactly the files.
func (f *fixture) commit(action string, paths, files []string) crewbody.Receipt {
	f.t.Helper()
	r := Commit(f.t.Context(), f.request(paths...), action)
	require.False(f.t, r.Failed, "%+v", r)
	require.Empty(f.t, r.Error)
	slices.Sort(files)
	require.Equal(f.t, files, f.filesOf(r.Commit))
	require.Equal(f.t, files, r.Files)
	return r
}

// refused requires that a commit of paths fails and changes nothing, and returns the error.
func (f *fixture) refused(paths ...string) string {
	f.t.Helper()
	before := fmt.Sprint(f.commits(), f.status())
	r := Commit(f.t.Context(), f.request(paths...), "repository/r/1")
	require.True(f.t, r.Failed)
	require.Empty(f.t, r.Commit)
	require.Equal(f.t, before, fmt.Sprint(f.commits(), f.status()))
	return r.Error
}
