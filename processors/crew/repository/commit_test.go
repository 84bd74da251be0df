package repository

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/crew/host/git"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/view"
	"github.com/turntable-streams/turntable/topics"
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
func (d *onDisk) in(m topics.CrewMember) topics.CrewMember {
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
		var r topics.CrewReceipt
		switch a.Kind {
		case "commit":
			r = git.Commit(d.t.Context(), actionBody[topics.CrewCommit](d.t, a), a.ActionID)
		case "dirty":
			r = git.Dirty(d.t.Context(), actionBody[topics.CrewDirty](d.t, a), a.ActionID)
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
	require.Equal(t, topics.CrewLockReleased, mails[topics.CrewLockChanged](e, "crew/crew-1")[0].Action)
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
	require.Empty(t, h.unlock(mira, "a.go"), "the second one waits for the same answer")
	require.True(t, HasOpenActions(h.state(), "dock"))
	require.False(t, HasOpenActions(h.state(), "pier"))
	require.Empty(t, h.advance(answerWithin-time.Millisecond))
	e := h.advance(time.Millisecond)
	require.Empty(t, e.kinds())
	require.Contains(t, e.notes(mira), "does not answer. The lock is kept")
	require.False(t, HasOpenActions(h.state(), "dock"))
	require.Empty(t, h.receipt(topics.CrewReceipt{ActionID: asked[0].ActionID}), "too late")
	require.Equal(t, []string{"a.go"}, h.held(mira))

	// The answer about an earlier lock is not one about a later lock.
	asked = h.unlock(mira, "a.go").actions()
	h.do("", topics.CrewUnlockAsked{AgentID: mira.AgentID, FilePath: "a.go"})
	h.locked(mira, "a.go")
	require.Empty(t, h.receipt(topics.CrewReceipt{ActionID: asked[0].ActionID}))
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
	body := actionBody[topics.CrewCommit](t, e.actions()[0])
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
	require.Empty(t, mails[topics.CrewCommitted](e, "crew/crew-1"))
	require.Equal(t, "COMMIT failed: nothing to commit", e.notes(m))

	d.write("a.txt", "changed\n")
	d.write("c.txt", "of another\n")
	e = d.work(d.commit(m, "Change a"))
	head := strings.TrimSpace(d.git("rev-parse", "HEAD"))
	require.Equal(t, []string{"agent:committed"}, e.kinds())
	require.Equal(t, fields{
		"agentId": m.AgentID, "commit": head, "files": []any{"a.txt"}, "message": "Change a",
	}, e.events("agent:committed")[0])
	require.Equal(t, []topics.CrewCommitted{{AgentID: m.AgentID, Commit: head, Files: []string{"a.txt"}, Message: "Change a"}},
		mails[topics.CrewCommitted](e, "crew/crew-1"))
	require.Equal(t, "COMMIT: [main "+head[:7]+"] Change a (1 file). Your locks are kept.\n"+
		`Warning: not in the commit, because they have no changes or do not exist: "b.txt", "later.txt"`+"\n"+
		`Changed, but not part of the commit: "c.txt"`, e.notes(m))
	require.Equal(t, []string{"a.txt", "b.txt", "later.txt"}, d.held(m))

	require.NoError(t, os.RemoveAll(filepath.Join(d.dir, ".git")))
	e = d.work(d.commit(m, "Gone"))
	require.Empty(t, e.kinds())
	require.Contains(t, e.notes(m), "COMMIT failed: git rev-parse: fatal: not a git repository")
}

func TestK07_DefaultMessageAndTwoAgentsAtOnce(t *testing.T) {
	d := newOnDisk(t, "a.txt", "b.txt")
	m, n := d.in(mira), d.in(noor)
	d.locked(m, "a.txt")
	d.locked(n, "b.txt")
	d.write("a.txt", "changed\n")
	d.write("b.txt", "changed\n")
	first, second := d.commit(m, ""), d.commit(n, "  ")
	body := actionBody[topics.CrewCommit](t, first.actions()[0])
	require.Equal(t, "Changes by Developer (a1a1a1a1)", body.Message)
	require.Equal(t, "Developer (a1a1a1a1)", body.Author)
	require.Equal(t, d.dir, body.Cwd)
	require.EqualValues(t, 1, body.Fence)
	require.EqualValues(t, 2, actionBody[topics.CrewCommit](t, second.actions()[0]).Fence)
	require.Equal(t, []any{"b.txt"}, d.work(second).events("agent:committed")[0]["files"])
	require.Equal(t, []any{"a.txt"}, d.work(first).events("agent:committed")[0]["files"])
	require.Equal(t, "Changes by Developer (a1a1a1a1)\nChanges by Code Reviewer (b2b2b2b2)\nStart\n", d.git("log", "--format=%s"))
}

// Until the receipt, what is being committed belongs to its agent, however long that takes.
func TestLocksOfAnOpenCommitAreKept(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go")
	open := h.commit(mira, "Mine").actions()[0]
	require.Empty(t, h.advance(time.Hour))
	require.Equal(t, []string{"a.go"}, h.held(mira))
	require.Equal(t, []string{"lock:denied"}, h.lock(noor, "a.go").kinds())
	require.Empty(t, h.do("", topics.CrewUnlockAsked{AgentID: mira.AgentID, FilePath: "a.go"}))
	require.Empty(t, h.unlock(mira, "a.go").actions(), "UNLOCK_FILE waits for the commit")
	require.Empty(t, h.end(mira).kinds())
	require.Equal(t, []string{"a.go"}, h.held(mira))
	e := h.receipt(topics.CrewReceipt{ActionID: open.ActionID, Commit: "c1", Files: []string{"a.go"}})
	require.Equal(t, []string{"agent:committed", "lock:released"}, e.kinds())
	require.Empty(t, e.notes(mira), "it has ended")
	require.Empty(t, h.receipt(topics.CrewReceipt{ActionID: open.ActionID, Commit: "c1"}), "a receipt counts once")
	require.Empty(t, h.state().Commits)

	h.locked(mira, "a.go") // it was started again
	open = h.commit(mira, "Mine").actions()[0]
	h.advance(time.Hour)
	e = h.receipt(topics.CrewReceipt{ActionID: open.ActionID, Failed: true, Error: "disk full\nmore"})
	require.Equal(t, []string{"lock:expired"}, e.kinds(), "its time was over before")
	require.Contains(t, e.notes(mira), "COMMIT failed: disk full\nYour lock on")
}

func TestPersonMayTakeTheLockOfAnOpenCommit(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go", "b.go")
	open := h.commit(mira, "Mine").actions()[0]
	asked := actionBody[topics.CrewCommit](t, open)
	require.Equal(t, h.now.Add(commitWithin).UnixMilli(), asked.UntilMS)
	e := h.do("", topics.CrewUnlockAsked{FilePath: "a.go", Force: true})
	require.Empty(t, e.kinds(), "the host may be committing the path")
	require.Contains(t, e.notes(mira), "Your open commit may still contain it")
	require.Empty(t, h.do("", topics.CrewUnlockAsked{FilePath: "a.go", Force: true}))
	for _, m := range []topics.CrewMember{noor, mira} {
		e = h.lock(m, "a.go")
		require.Equal(t, []string{"lock:denied"}, e.kinds())
		require.Contains(t, e.notes(m), "it is free after the commit")
	}
	require.Contains(t, h.unlock(mira, "a.go").notes(mira), "you have no lock")
	require.Contains(t, h.commit(mira, "More", "a.go").notes(mira), "COMMIT waits")

	h.now = h.now.Add(time.Second)
	again := h.do("host/dock", topics.CrewHostStarted{Host: "dock", Epoch: 2}).actions()
	require.Len(t, again, 1)
	require.Equal(t, open.ActionID, again[0].ActionID)
	body := actionBody[topics.CrewCommit](t, again[0])
	require.Equal(t, []string{"b.go"}, body.Paths)
	require.Equal(t, h.now.Add(commitWithin).UnixMilli(), body.UntilMS)

	e = h.receipt(topics.CrewReceipt{ActionID: open.ActionID, Commit: "c", Files: []string{"a.go", "b.go"}})
	require.Equal(t, "user", e.events("lock:released")[0]["by"])
	require.Equal(t, []string{"b.go"}, actionBody[topics.CrewCommit](t, e.actions()[0]).Paths, "the commit that waited")
	h.locked(noor, "a.go")
}

// A host that does not answer does not keep a released path for good: it makes no commit that late.
func TestReleasedPathOfAnUnansweredCommitIsFreeAfterItsTime(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go", "b.go")
	h.commit(mira, "Mine")
	released := h.now.Add(commitWithin + clockMargin)
	h.advance(time.Minute)
	h.do("", topics.CrewUnlockAsked{FilePath: "a.go", Force: true, By: "ines"})
	require.Equal(t, view.Time(released.UnixMilli()), Locks(h.key, h.state(), h.now.UnixMilli())[0].ExpiresAt)
	h.do("host/dock", topics.CrewHostStarted{Host: "dock", Epoch: 2})
	require.Empty(t, h.advance(released.Sub(h.now)-time.Millisecond).kinds())
	require.Equal(t, []string{"lock:denied"}, h.lock(noor, "a.go").kinds())
	e := h.advance(time.Millisecond)
	require.Equal(t, []string{"lock:released"}, e.kinds())
	require.Equal(t, "ines", e.events("lock:released")[0]["by"])
	h.locked(noor, "a.go")
	require.Equal(t, []string{"b.go"}, h.held(mira), "what was not released is kept for the commit")
}

// A host can be gone for good. What waits for it is not kept for ever, or nothing else would fit into the row.
func TestCommitOfAnEndedAgentIsGivenUpWithItsLastLock(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go", "b.go")
	open := h.commit(mira, "Mine").actions()[0]
	h.do(mailbox.Agent(mira.AgentID), topics.CrewAgentEnded{AgentID: mira.AgentID})
	h.do("", topics.CrewUnlockAsked{FilePath: "a.go", Force: true})
	h.advance(time.Hour)
	require.Len(t, h.state().Commits, 1, "its host may still answer")
	e := h.do("", topics.CrewUnlockAsked{FilePath: "b.go", Force: true})
	require.Equal(t, []string{"lock:released"}, e.kinds(), "the host makes no commit that late")
	require.Empty(t, h.state().Commits)
	require.False(t, HasOpenActions(h.state(), "dock"))
	require.Empty(t, h.do("host/dock", topics.CrewHostStarted{Host: "dock", Epoch: 2}).actions(), "the host does not commit it later")
	require.Empty(t, h.receipt(topics.CrewReceipt{ActionID: open.ActionID, Commit: "c"}))
}

func TestHostThatStartsGetsItsOpenActionsAgain(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go")
	h.locked(noor, "b.go")
	commit, ask := h.commit(mira, "Mine").actions(), h.unlock(noor, "b.go").actions()
	require.Empty(t, h.do("host/pier", topics.CrewHostStarted{Host: "pier", Epoch: 2}))
	require.Equal(t, append(commit, ask...), h.do("host/dock", topics.CrewHostStarted{Host: "dock", Epoch: 2}).actions())
}

// COMMIT and UNLOCK_FILE in one text do what they say, in their order.
func TestCommandsAfterACommitWaitForIt(t *testing.T) {
	d := newOnDisk(t, "a.txt", "b.txt")
	m := d.in(mira)
	d.locked(m, "a.txt", "b.txt")
	d.write("a.txt", "changed\n")
	first := d.commit(m, "One")
	require.Empty(t, d.unlock(m, "a.txt").actions())
	waits := d.commit(m, "Two")
	require.Empty(t, waits.actions())
	require.Contains(t, waits.notes(m), "COMMIT waits")
	e := d.work(first)
	require.Equal(t, []string{"agent:committed", "lock:released"}, e.kinds())
	require.Contains(t, e.notes(m), "COMMIT failed: nothing to commit")
	require.Equal(t, []string{"b.txt"}, d.held(m))
	s := d.state()
	require.Empty(t, s.Commits)
	require.Empty(t, s.Queue)
	require.Empty(t, s.Releases)
}

func TestFewCommitsOfAnAgentWait(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go")
	h.locked(noor, "b.go")
	open := h.commit(mira, "0").actions()[0]
	for i := range queueLimit {
		require.Contains(t, h.commit(mira, fmt.Sprint(i+1)).notes(mira), "COMMIT waits")
	}
	require.Contains(t, h.commit(mira, "x").notes(mira), "20 of your commits wait")
	require.Len(t, h.commit(noor, "other").actions(), 1, "another agent does not wait")
	for i := range queueLimit {
		next := h.receipt(topics.CrewReceipt{ActionID: open.ActionID, Commit: "c"}).actions()
		require.Len(t, next, 1)
		open = next[0]
		require.Equal(t, fmt.Sprint(i+1), actionBody[topics.CrewCommit](t, open).Message)
	}
	h.do("", topics.CrewUnlockAsked{FilePath: "a.go", Force: true})
	h.commit(mira, "late")
	require.Contains(t, h.receipt(topics.CrewReceipt{ActionID: open.ActionID, Failed: true}).notes(mira), "you have locked no files")
	require.Len(t, h.state().Commits, 1)
}

// A queued commit contains what its agent holds when it is opened, not what it held when it was asked for.
func TestQueuedCommitHasNoExpiredLocks(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go")
	open := h.commit(mira, "One").actions()[0]
	h.commit(mira, "Two")
	h.advance(time.Hour)
	e := h.receipt(topics.CrewReceipt{ActionID: open.ActionID, Commit: "c"})
	require.Equal(t, []string{"agent:committed", "lock:expired"}, e.kinds())
	require.Empty(t, e.actions())
	require.Contains(t, e.notes(mira), "you have locked no files")
}

func TestAnswersAreShort(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go")
	many := make([]string, 400)
	for i := range many {
		many[i] = fmt.Sprint("file ", i)
	}
	open := h.commit(mira, strings.Repeat("ü", 20_000), many...).actions()[0]
	require.LessOrEqual(t, len(actionBody[topics.CrewCommit](t, open).Message), messageLimit)
	e := h.receipt(topics.CrewReceipt{
		ActionID: open.ActionID, Summary: strings.Repeat("s", 5000), Missing: many, Others: many, Error: strings.Repeat("e", 5000),
	})
	require.Less(t, len(e.notes(mira)), 3000)
	require.Contains(t, e.notes(mira), "and 385 more")
	require.Equal(t, "repository/harbor", mailbox.Repository(h.key))
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
