package repository

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/git"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// Until the receipt, what is being committed belongs to its agent, however long that takes.
func TestLocksOfAnOpenCommitAreKept(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go")
	open := h.commit(mira, "Mine").actions()[0]
	require.Empty(t, h.advance(time.Hour))
	require.Equal(t, []string{"a.go"}, h.held(mira))
	require.Equal(t, []string{"lock:denied"}, h.lock(noor, "a.go").kinds())
	require.Empty(t, h.do("", crewbody.UnlockAsked{AgentID: mira.AgentID, FilePath: "a.go"}))
	require.Empty(t, h.unlock(mira, "a.go").actions(), "UNLOCK_FILE waits for the commit")
	require.Empty(t, h.end(mira).kinds())
	require.Equal(t, []string{"a.go"}, h.held(mira))
	e := h.receipt(crewbody.Receipt{ActionID: open.ActionID, Commit: "c1", Files: []string{"a.go"}})
	require.Equal(t, []string{"agent:committed", "lock:released"}, e.kinds())
	require.Empty(t, e.notes(mira), "it has ended")
	require.Empty(t, h.receipt(crewbody.Receipt{ActionID: open.ActionID, Commit: "c1"}), "a receipt counts once")
	require.Empty(t, h.state().Commits)

	h.locked(mira, "a.go") // it was started again
	open = h.commit(mira, "Mine").actions()[0]
	h.advance(time.Hour)
	e = h.receipt(crewbody.Receipt{ActionID: open.ActionID, Failed: true, Error: "disk full\nmore"})
	require.Equal(t, []string{"lock:expired"}, e.kinds(), "its time was over before")
	require.Contains(t, e.notes(mira), "COMMIT failed: disk full\nYour lock on")
}

func TestPersonMayTakeTheLockOfAnOpenCommit(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go", "b.go")
	open := h.commit(mira, "Mine").actions()[0]
	asked := actionBody[crewbody.Commit](t, open)
	require.Equal(t, h.now.Add(commitWithin).UnixMilli(), asked.UntilMS)
	e := h.do("", crewbody.UnlockAsked{FilePath: "a.go", Force: true})
	require.Empty(t, e.kinds(), "the host may be committing the path")
	require.Contains(t, e.notes(mira), "Your open commit may still contain it")
	require.Empty(t, h.do("", crewbody.UnlockAsked{FilePath: "a.go", Force: true}))
	for _, m := range []crewbody.Member{noor, mira} {
		e = h.lock(m, "a.go")
		require.Equal(t, []string{"lock:denied"}, e.kinds())
		require.Contains(t, e.notes(m), "it is free after the commit")
	}
	require.Contains(t, h.unlock(mira, "a.go").notes(mira), "you have no lock")
	require.Contains(t, h.commit(mira, "More", "a.go").notes(mira), "COMMIT waits")

	h.now = h.now.Add(time.Second)
	again := h.do("host/dock", crewbody.HostStarted{Host: "dock", Epoch: 2}).actions()
	require.Len(t, again, 1)
	require.Equal(t, open.ActionID, again[0].ActionID)
	body := actionBody[crewbody.Commit](t, again[0])
	require.Equal(t, []string{"b.go"}, body.Paths)
	require.Equal(t, []string{"a.go"}, body.Released, "the host may have committed it before")
	require.Equal(t, h.now.Add(commitWithin).UnixMilli(), body.UntilMS)

	e = h.receipt(crewbody.Receipt{ActionID: open.ActionID, Commit: "c", Files: []string{"a.go", "b.go"}})
	require.Equal(t, "user", e.events("lock:released")[0]["by"])
	require.Equal(t, []string{"b.go"}, actionBody[crewbody.Commit](t, e.actions()[0]).Paths, "the commit that waited")
	h.locked(noor, "a.go")
}

// The host has made the commit and is restarted before its receipt is written. Git finds the commit although a person has released paths
// of it meanwhile, also when those have another holder.
func TestCommitThatWasMadeBeforeAForcedUnlockIsNotRepeated(t *testing.T) {
	for name, wait := range map[string]time.Duration{"at once": 0, "after the time of the commit": commitWithin + clockMargin} {
		t.Run(name, func(t *testing.T) {
			d := newOnDisk(t, "a.txt", "b.txt")
			m := d.in(mira)
			d.locked(m, "a.txt", "b.txt")
			d.write("a.txt", "changed\n")
			d.write("b.txt", "changed\n")
			action := d.commit(m, "Mine").actions()[0]
			lost := git.Commit(t.Context(), actionBody[crewbody.Commit](t, action), action.ActionID)
			require.False(t, lost.Failed, lost.Error)
			d.do("", crewbody.UnlockAsked{FilePath: "a.txt", Force: true})
			d.advance(wait)
			d.write("b.txt", "later\n")
			again := d.do("host/dock", crewbody.HostStarted{Host: "dock", Epoch: 2})
			d.do("", crewbody.UnlockAsked{FilePath: "b.txt", Force: true})
			last := d.do("host/dock", crewbody.HostStarted{Host: "dock", Epoch: 3}).actions()[0]
			require.Empty(t, actionBody[crewbody.Commit](t, last).Paths)
			require.Equal(t, lost.Commit, git.Commit(t.Context(), actionBody[crewbody.Commit](t, last), last.ActionID).Commit)
			e := d.work(again)
			require.Equal(t, []any{"a.txt", "b.txt"}, e.events("agent:committed")[0]["files"])
			require.Equal(t, lost.Commit, e.events("agent:committed")[0]["commit"])
			require.Equal(t, 2, d.commits())
		})
	}
}

// A host that does not answer does not keep a released path for good: it makes no commit that late.
func TestReleasedPathOfAnUnansweredCommitIsFreeAfterItsTime(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go", "b.go")
	h.commit(mira, "Mine")
	released := h.now.Add(commitWithin + clockMargin)
	h.advance(time.Minute)
	h.do("", crewbody.UnlockAsked{FilePath: "a.go", Force: true, By: "ines"})
	require.Equal(t, view.Time(released.UnixMilli()), Locks(h.key, h.state(), h.now.UnixMilli())[0].ExpiresAt)
	h.do("host/dock", crewbody.HostStarted{Host: "dock", Epoch: 2})
	require.Empty(t, h.advance(released.Sub(h.now)-time.Millisecond).kinds())
	require.Equal(t, []string{"lock:denied"}, h.lock(noor, "a.go").kinds())
	e := h.advance(time.Millisecond)
	require.Equal(t, []string{"lock:released"}, e.kinds())
	require.Equal(t, "ines", e.events("lock:released")[0]["by"])
	h.locked(noor, "a.go")
	require.Equal(t, []string{"b.go"}, h.held(mira), "what was not released is kept for the commit")
}

// A host may never return. What waits for it is dropped with the last lock; otherwise nothing else would fit into the row.
func TestCommitOfAnEndedAgentIsGivenUpWithItsLastLock(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go", "b.go")
	open := h.commit(mira, "Mine").actions()[0]
	h.do(mailbox.Agent(mira.AgentID), crewbody.AgentEnded{AgentID: mira.AgentID})
	h.do("", crewbody.UnlockAsked{FilePath: "a.go", Force: true})
	h.advance(time.Hour)
	require.Len(t, h.state().Commits, 1, "its host may still answer")
	e := h.do("", crewbody.UnlockAsked{FilePath: "b.go", Force: true})
	require.Equal(t, []string{"lock:released"}, e.kinds(), "the host makes no commit that late")
	require.Empty(t, h.state().Commits)
	require.False(t, HasOpenActions(h.state(), "dock"))
	require.Empty(t, h.do("host/dock", crewbody.HostStarted{Host: "dock", Epoch: 2}).actions(), "the host does not commit it later")
	require.Empty(t, h.receipt(crewbody.Receipt{ActionID: open.ActionID, Commit: "c"}))
}

func TestHostThatStartsGetsItsOpenActionsAgain(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go")
	h.locked(noor, "b.go")
	commit, ask := h.commit(mira, "Mine").actions(), h.unlock(noor, "b.go").actions()
	require.Empty(t, h.do("host/pier", crewbody.HostStarted{Host: "pier", Epoch: 2}))
	require.Equal(t, append(commit, ask...), h.do("host/dock", crewbody.HostStarted{Host: "dock", Epoch: 2}).actions())
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
		next := h.receipt(crewbody.Receipt{ActionID: open.ActionID, Commit: "c"}).actions()
		require.Len(t, next, 1)
		open = next[0]
		require.Equal(t, fmt.Sprint(i+1), actionBody[crewbody.Commit](t, open).Message)
	}
	h.do("", crewbody.UnlockAsked{FilePath: "a.go", Force: true})
	h.commit(mira, "late")
	require.Contains(t, h.receipt(crewbody.Receipt{ActionID: open.ActionID, Failed: true}).notes(mira), "you have locked no files")
	require.Len(t, h.state().Commits, 1)
}

// A queued commit contains what its agent holds when it is opened, not what it held when it was asked for.
func TestQueuedCommitHasNoExpiredLocks(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go")
	open := h.commit(mira, "One").actions()[0]
	h.commit(mira, "Two")
	h.advance(time.Hour)
	e := h.receipt(crewbody.Receipt{ActionID: open.ActionID, Commit: "c"})
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
	require.LessOrEqual(t, len(actionBody[crewbody.Commit](t, open).Message), messageLimit)
	e := h.receipt(crewbody.Receipt{
		ActionID: open.ActionID, Summary: strings.Repeat("s", 5000), Missing: many, Others: many, Error: strings.Repeat("e", 5000),
	})
	require.Less(t, len(e.notes(mira)), 3000)
	require.Contains(t, e.notes(mira), "and 385 more")
	require.Equal(t, "repository/harbor", mailbox.Repository(h.key))
}
