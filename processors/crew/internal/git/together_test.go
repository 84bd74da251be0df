package git

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/turntable-streams/turntable/internal/crewbody"
)

func TestManyAgentsCommitAtOnce(t *testing.T) {
	const agents, rounds = 8, 4
	f := newFixture(t, "shared.txt")
	f.write("shared.txt", "dirty\n")
	var all sync.WaitGroup
	receipts := make([][]crewbody.Receipt, agents)
	for a := range agents {
		all.Go(func() {
			dir := fmt.Sprint("agent ", a)
			for round := range rounds {
				f.write(dir+"/x.txt", fmt.Sprint(round))
				f.write(fmt.Sprintf("%s/new %d.txt", dir, round), "x\n")
				f.write(fmt.Sprintf("single %d.txt", a), fmt.Sprint(round))
				req := f.request(dir+"/*", fmt.Sprintf("single %d.txt", a))
				req.AgentID = fmt.Sprint("agent-", a)
				id := fmt.Sprintf("repository/r/%d-%d", a, round)
				receipts[a] = append(receipts[a], Commit(t.Context(), req, id))
			}
		})
	}
	all.Wait()
	for a, list := range receipts {
		for round, r := range list {
			require.False(t, r.Failed, r.Error)
			require.Empty(t, r.Error)
			want := []string{
				fmt.Sprintf("agent %d/new %d.txt", a, round), fmt.Sprintf("agent %d/x.txt", a), fmt.Sprintf("single %d.txt", a),
			}
			require.Equal(t, want, r.Files)
			require.Equal(t, want, f.filesOf(r.Commit))
		}
	}
	require.Equal(t, agents*rounds+1, f.commits())
	require.Equal(t, []string{" M shared.txt"}, f.status())
	f.git("fsck", "--strict")
}

// The processes of two hosts do not share the queue: without it, commits conflict and are made again.
func TestCommitsOfSeveralProcessesConflictAndAreAllMade(t *testing.T) {
	const agents = 6
	f := newFixture(t, "shared.txt")
	var all sync.WaitGroup
	files := make([][]string, agents)
	errs := make([]error, agents)
	for a := range agents {
		f.write(fmt.Sprintf("%d.txt", a), "x\n")
	}
	for a := range agents {
		all.Go(func() {
			var done made
			done, _, errs[a] = committer{}.runUnqueued(t.Context(), f.request(fmt.Sprintf("%d.txt", a)), fmt.Sprint(a))
			files[a] = done.files
		})
	}
	all.Wait()
	for a := range agents {
		require.NoError(t, errs[a])
		require.Equal(t, []string{fmt.Sprintf("%d.txt", a)}, files[a])
	}
	require.Equal(t, agents+1, f.commits())
}

// Another program that holds the lock of the shared index delays the refresh, and can make it fail. The commit is made.
func TestLockedIndexDelaysOnlyTheRefresh(t *testing.T) {
	f := newFixture(t, "a.txt")
	lock := filepath.Join(f.dir, ".git", "index.lock")
	f.write("a.txt", "mine\n")
	require.NoError(t, os.WriteFile(lock, nil, 0o644))
	time.AfterFunc(150*time.Millisecond, func() { _ = os.Remove(lock) })
	f.commit("1", []string{"a.txt"}, []string{"a.txt"})
	require.Empty(t, f.status())

	f.write("a.txt", "again\n")
	require.NoError(t, os.WriteFile(lock, nil, 0o644))
	r := Commit(t.Context(), f.request("a.txt"), "2")
	require.False(t, r.Failed)
	require.Contains(t, r.Error, "the index was not updated")
	require.NoError(t, os.Remove(lock))
	require.Equal(t, []string{"MM a.txt"}, f.status())
	require.Empty(t, Commit(t.Context(), f.request("a.txt"), "2").Error)
	require.Empty(t, f.status())
}

// A lock file that a killed git has left behind is not taken for a commit that came first.
func TestErrorOfALockedBranchIsThatOfGit(t *testing.T) {
	f := newFixture(t, "a.txt")
	f.write("a.txt", "mine\n")
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, ".git", "refs", "heads", "main.lock"), nil, 0o644))
	reason := f.refused("a.txt")
	require.Contains(t, reason, "main.lock': File exists")
	require.NotContains(t, reason, "came first")
}

// Agents may work in work trees of their own, or below the top of one.
func TestCommitsAreMadeInTheWorkTreeOfTheAgentsDirectory(t *testing.T) {
	f := newFixture(t, "a.txt", "deep/b.txt")
	other := filepath.Join(t.TempDir(), "other tree")
	f.git("worktree", "add", "--quiet", "-b", "side", other)
	for _, dir := range []string{f.dir, other} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte(dir), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "deep", "b.txt"), []byte(dir), 0o644))
	}
	req := f.request("a.txt")
	req.Cwd = other
	side := Commit(t.Context(), req, "1")
	require.False(t, side.Failed, side.Error)
	require.Equal(t, []string{" M a.txt", " M deep/b.txt"}, f.status())
	req = f.request("a.txt")
	req.Cwd = filepath.Join(f.dir, "deep")
	main := Commit(t.Context(), req, "2")
	require.False(t, main.Failed, main.Error)
	require.Equal(t, []string{"a.txt"}, f.filesOf(main.Commit))
	require.Equal(t, side.Commit+"\n", f.git("rev-parse", "side"))
	require.Equal(t, main.Commit+"\n", f.git("rev-parse", "main"))
	require.True(t, slices.Equal([]string{" M deep/b.txt"}, f.status()))
}

func TestCommitOnADetachedHead(t *testing.T) {
	f := newFixture(t, "a.txt")
	f.git("checkout", "--quiet", "--detach")
	f.write("a.txt", "mine\n")
	r := f.commit("1", []string{"a.txt"}, []string{"a.txt"})
	require.Contains(t, r.Summary, "[detached HEAD ")
	require.NotEqual(t, r.Commit+"\n", f.git("rev-parse", "main"))
}

func TestSubmoduleIsCommittedByItsOwnPathOnly(t *testing.T) {
	f := newFixture(t, "a.txt")
	inner := newFixture(t, "in.txt")
	f.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner.dir, "libs/sub")
	f.git("-c", "user.name=Mira", "-c", "user.email=mira@example.com", "commit", "--quiet", "-m", "Add sub")
	sub := &fixture{t: t, dir: filepath.Join(f.dir, "libs", "sub")}
	sub.write("in.txt", "changed\n")
	sub.git("-c", "user.name=Mira", "-c", "user.email=mira@example.com", "commit", "--quiet", "-a", "-m", "Inner")
	sub.write("more.txt", "x\n")
	require.Equal(t, "nothing to commit", f.refused("libs/sub/*"))
	f.commit("1", []string{"libs/sub"}, []string{"libs/sub"})

	nested := filepath.Join(f.dir, "libs", "nested")
	require.NoError(t, os.MkdirAll(nested, 0o755))
	(&fixture{t: t, dir: nested}).git("init", "--quiet")
	f.write("libs/nested/x.txt", "x\n")
	f.write("libs/y.txt", "x\n")
	f.commit("2", []string{"libs/*"}, []string{"libs/y.txt"})
}
