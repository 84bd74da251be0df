package repository

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/git"
)

// onDisk is a harness whose host works in a repository with a commit.
type onDisk struct {
	*harness
	t   *testing.T
	dir string
}

func newOnDisk(t *testing.T, files ...string) *onDisk {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	d := &onDisk{harness: newHarness(t), t: t, dir: t.TempDir()}
	d.now = time.Now().UTC() // the host has its own clock
	d.git("init", "--quiet", "--initial-branch=main")
	for _, name := range files {
		d.write(name, "first\n")
	}
	d.git("add", "--all")
	d.git("-c", "user.name=Ines", "-c", "user.email=ines@example.com", "commit", "--quiet", "--allow-empty", "-m", "Start")
	return d
}

func (d *onDisk) git(args ...string) string {
	d.t.Helper()
	c := exec.CommandContext(d.t.Context(), "git", args...)
	c.Dir = d.dir
	out, err := c.CombinedOutput()
	require.NoError(d.t, err, "git %v: %s", args, out)
	return string(out)
}

func (d *onDisk) write(name, text string) {
	d.t.Helper()
	name = filepath.Join(d.dir, name)
	require.NoError(d.t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(d.t, os.WriteFile(name, []byte(text), 0o644))
}

// in is an agent that works in the repository.
func (d *onDisk) in(m crewbody.Member) crewbody.Member {
	m.Cwd = d.dir
	return m
}

// work has the host do actions, and the row read the receipts, until there are none. It returns what the receipts caused.
func (d *onDisk) work(e effects) (all effects) {
	d.t.Helper()
	for actions := e.actions(); len(actions) > 0; actions = actions[1:] {
		a := actions[0]
		require.Equal(d.t, "dock", a.Host)
		require.Equal(d.t, "repository/harbor", a.Subject)
		var r crewbody.Receipt
		switch a.Kind {
		case "commit":
			r = git.Commit(d.t.Context(), actionBody[crewbody.Commit](d.t, a), a.ActionID)
		case "dirty":
			r = git.Dirty(d.t.Context(), actionBody[crewbody.Dirty](d.t, a), a.ActionID)
		default:
			require.Fail(d.t, a.Kind)
		}
		more := d.receipt(r)
		all, actions = append(all, more...), append(actions, more.actions()...)
	}
	return all
}

func (d *onDisk) commits() int { return len(strings.Fields(d.git("rev-list", "HEAD"))) }

func TestL09_FileWithChangesIsNotReleased(t *testing.T) {
	d := newOnDisk(t, "a.txt", "b.txt", "c.txt")
	m := d.in(mira)
	d.locked(m, "a.txt", "b.txt", "c.txt", "new.txt")
	d.write("a.txt", "unstaged\n")
	d.write("b.txt", "staged\n")
	d.git("add", "b.txt")
	d.write("new.txt", "unknown to git\n")
	for _, path := range []string{"a.txt", "b.txt", "new.txt"} {
		asked := d.unlock(m, path)
		require.Empty(t, asked.kinds())
		require.Empty(t, asked.notes(m), "the answer comes with the receipt")
		e := d.work(asked)
		require.Empty(t, e.kinds())
		require.Contains(t, e.notes(m), "COMMIT first")
	}
	e := d.work(d.unlock(m, "./c.txt"))
	require.Equal(t, []fields{{"filePath": "c.txt", "agentId": m.AgentID, "agentRole": "developer", "token": 3.0}}, e.events("lock:released"))
	require.Equal(t, crewbody.LockReleased, mails[crewbody.LockChanged](e, "crew/crew-1")[0].Action)
	require.Equal(t, `Released "c.txt".`, e.notes(m))
	require.Equal(t, []string{"a.txt", "b.txt", "new.txt"}, d.held(m))

	d.work(d.commit(m, "All"))
	require.Len(t, d.work(d.unlock(m, "a.txt")).events("lock:released"), 1)
	require.NoError(t, os.RemoveAll(filepath.Join(d.dir, ".git")))
	require.Len(t, d.work(d.unlock(m, "b.txt")).events("lock:released"), 1, "git fails")
	m.Host = ""
	require.Len(t, d.unlock(m, "new.txt").events("lock:released"), 1, "there is no host")
}

func TestLockIsKeptWhileTheHostIsSilent(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go")
	asked := h.unlock(mira, "a.go").actions()
	require.Len(t, asked, 1)
	again := h.unlock(mira, "a.go")
	require.Empty(t, again.actions(), "the host is asked once")
	require.Contains(t, again.notes(mira), "is being released already")
	require.True(t, HasOpenActions(h.state(), "dock"))
	require.False(t, HasOpenActions(h.state(), "pier"))
	require.Empty(t, h.advance(answerWithin-time.Millisecond))
	e := h.advance(time.Millisecond)
	require.Empty(t, e.kinds())
	require.Contains(t, e.notes(mira), "does not answer. The lock is kept")
	require.False(t, HasOpenActions(h.state(), "dock"))
	require.Empty(t, h.receipt(crewbody.Receipt{ActionID: asked[0].ActionID}), "too late")
	require.Equal(t, []string{"a.go"}, h.held(mira))

	// The answer about an earlier lock is not one about a later lock.
	asked = h.unlock(mira, "a.go").actions()
	h.do("", crewbody.UnlockAsked{AgentID: mira.AgentID, FilePath: "a.go"})
	h.locked(mira, "a.go")
	require.Empty(t, h.receipt(crewbody.Receipt{ActionID: asked[0].ActionID}))
	require.Equal(t, []string{"a.go"}, h.held(mira))
}

func TestK03_CommitWithoutLocksIsRefused(t *testing.T) {
	d := newOnDisk(t, "a.txt")
	m := d.in(mira)
	d.write("a.txt", "changed\n")
	e := d.commit(m, "Mine")
	require.Empty(t, e.actions())
	require.Empty(t, e.kinds())
	require.Contains(t, e.notes(m), "COMMIT refused: you have locked no files")
	e = d.commit(m, "Mine", "a.txt")
	require.Empty(t, e.actions(), "naming a file does not lock it")
	require.Contains(t, e.notes(m), `you have not locked them: "a.txt"`)
	require.Equal(t, 1, d.commits())
	m.Host = ""
	d.locked(m, "a.txt")
	require.Contains(t, d.commit(m, "Mine").notes(m), "no host")
}

// The eras differ in whether files that are not locked are committed. Here they are left out, because a commit contains only what
// its agent holds.
func TestK04_NamedFilesAreMergedWithTheLocksAndUnlockedOnesAreLeftOut(t *testing.T) {
	d := newOnDisk(t, "a.txt", "src/b.txt", "c.txt")
	m := d.in(mira)
	for _, name := range []string{"a.txt", "src/b.txt", "c.txt"} {
		d.write(name, "changed\n")
	}
	d.locked(m, "a.txt", "src/*")
	d.locked(d.in(noor), "c.txt")
	e := d.commit(m, "Mine", "a.txt", "./a.txt", "src/b.txt", "c.txt", "c.txt", "-A", ".", "../x")
	body := actionBody[crewbody.Commit](t, e.actions()[0])
	require.Equal(t, []string{"a.txt", "src/*"}, body.Paths)
	e = d.work(e)
	require.Contains(t, e.notes(m), `Warning: left out, because you have not locked them: "c.txt", "-A", ".", "../x"`)
	require.Equal(t, []any{"a.txt", "src/b.txt"}, e.events("agent:committed")[0]["files"])
	require.Equal(t, " M c.txt\n", d.git("status", "--porcelain"))
}

func TestK06_OnlyACommitThatWasMadeIsAnEvent(t *testing.T) {
	d := newOnDisk(t, "a.txt", "b.txt")
	m := d.in(mira)
	d.locked(m, "a.txt", "b.txt", "later.txt")
	e := d.work(d.commit(m, "Nothing"))
	require.Empty(t, e.kinds())
	require.Empty(t, mails[crewbody.Committed](e, "crew/crew-1"))
	require.Equal(t, "COMMIT failed: nothing to commit", e.notes(m))

	d.write("a.txt", "changed\n")
	d.write("c.txt", "of another\n")
	e = d.work(d.commit(m, "Change a"))
	head := strings.TrimSpace(d.git("rev-parse", "HEAD"))
	require.Equal(t, []string{"agent:committed"}, e.kinds())
	require.Equal(t, fields{
		"agentId": m.AgentID, "commit": head, "files": []any{"a.txt"}, "message": "Change a",
	}, e.events("agent:committed")[0])
	require.Equal(t, []crewbody.Committed{{AgentID: m.AgentID, Commit: head, Files: []string{"a.txt"}, Message: "Change a"}},
		mails[crewbody.Committed](e, "crew/crew-1"))
	require.Equal(t, "COMMIT: [main "+head[:7]+"] Change a (1 file). Your locks are kept.\n"+
		`Warning: not in the commit, because they have no changes or do not exist: "b.txt", "later.txt"`+"\n"+
		`Changed, but not part of the commit: "c.txt"`, e.notes(m))
	require.Equal(t, []string{"a.txt", "b.txt", "later.txt"}, d.held(m))

	require.NoError(t, os.RemoveAll(filepath.Join(d.dir, ".git")))
	e = d.work(d.commit(m, "Gone"))
	require.Empty(t, e.kinds())
	require.Contains(t, e.notes(m), "COMMIT failed: git rev-parse: fatal: not a git repository")
}

func TestK05_MissingFilesAreNamedAndAFailedCheckDoesNotFailTheCommit(t *testing.T) {
	d := newOnDisk(t, "a.txt", "b.txt")
	m := d.in(mira)
	d.locked(m, "a.txt", "b.txt")
	d.write("a.txt", "one\n")
	e := d.work(d.commit(m, "One"))
	require.Contains(t, e.notes(m), `Warning: not in the commit, because they have no changes or do not exist: "b.txt"`)
	d.write("a.txt", "two\n")
	d.write("b.txt", "two\n")
	require.NotContains(t, d.work(d.commit(m, "Two")).notes(m), "Warning")

	// Without an index that git can read, what is left over cannot be listed.
	d.write("a.txt", "three\n")
	d.write(".git/index", "no index")
	e = d.work(d.commit(m, "Three"))
	require.Equal(t, []any{"a.txt"}, e.events("agent:committed")[0]["files"])
	require.Len(t, mails[crewbody.Committed](e, "crew/crew-1"), 1)
	require.Contains(t, e.notes(m), "COMMIT: [main ")
	require.Contains(t, e.notes(m), `"b.txt"`)
	require.Contains(t, e.notes(m), "Warning: the index was not updated")
	require.Equal(t, 4, d.commits())
}

func TestK07_DefaultMessageAndTwoAgentsAtOnceEachGetOnlyTheirFiles(t *testing.T) {
	d := newOnDisk(t, "a.txt", "deep/b.txt", "c.txt")
	m, n := d.in(mira), d.in(noor)
	n.Cwd = filepath.Join(d.dir, "deep")
	d.locked(m, "a.txt")
	d.locked(n, "deep/b.txt")
	first, second := d.commit(m, ""), d.commit(n, "  ")
	body := actionBody[crewbody.Commit](t, first.actions()[0])
	require.Equal(t, "Changes by Developer (a1a1a1a1)", body.Message)
	require.Equal(t, "Developer (a1a1a1a1)", body.Author)
	require.Equal(t, d.dir, body.Cwd)
	require.EqualValues(t, 1, body.Fence)
	body = actionBody[crewbody.Commit](t, second.actions()[0])
	require.Equal(t, "Changes by Code Reviewer (b2b2b2b2)", body.Message)
	require.Equal(t, n.Cwd, body.Cwd)
	require.EqualValues(t, 2, body.Fence)

	const rounds = 5
	for round := range rounds {
		for _, name := range []string{"a.txt", "deep/b.txt", "c.txt"} {
			d.write(name, fmt.Sprint("changed ", round))
		}
		if round > 0 {
			first, second = d.commit(m, ""), d.commit(n, "")
		}
		actions := append(first.actions(), second.actions()...)
		receipts := make([]crewbody.Receipt, len(actions))
		begin := make(chan struct{})
		var all sync.WaitGroup
		for i, a := range actions {
			req := actionBody[crewbody.Commit](t, a)
			all.Go(func() {
				<-begin
				receipts[i] = git.Commit(t.Context(), req, a.ActionID)
			})
		}
		close(begin)
		all.Wait()
		for i, file := range []string{"a.txt", "deep/b.txt"} {
			require.False(t, receipts[i].Failed, receipts[i].Error)
			require.Equal(t, file+"\n", d.git("show", "--format=", "--name-only", receipts[i].Commit))
			require.Equal(t, []any{file}, d.receipt(receipts[i]).events("agent:committed")[0]["files"])
		}
	}
	subjects := strings.Split(strings.TrimSpace(d.git("log", "--format=%s")), "\n")
	slices.Sort(subjects)
	require.Equal(t, slices.Concat(slices.Repeat([]string{"Changes by Code Reviewer (b2b2b2b2)"}, rounds),
		slices.Repeat([]string{"Changes by Developer (a1a1a1a1)"}, rounds), []string{"Start"}), subjects)
	require.Equal(t, " M c.txt\n", d.git("status", "--porcelain"))
}

func TestFileWithADecomposedNameIsCommittedAndKeptWhileItHasChanges(t *testing.T) {
	const name = "e\u0301.txt"
	d := newOnDisk(t, name)
	m := d.in(mira)
	d.locked(m, name)
	d.write(name, "changed\n")
	e := d.work(d.unlock(m, name))
	require.Empty(t, e.kinds())
	require.Contains(t, e.notes(m), "UNLOCK_FILE refused")
	require.Equal(t, []any{name}, d.work(d.commit(m, "Mine")).events("agent:committed")[0]["files"])
	require.Equal(t, []string{"lock:released"}, d.work(d.unlock(m, name)).kinds())
}
