package repository

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
)

// ids are the IDs of commands that the notes for an agent have, empty for a note that answers none.
func (e effects) ids(m crewbody.Member) (list []string) {
	for _, n := range mails[crewbody.Note](e, mailbox.Agent(m.AgentID)) {
		list = append(list, n.CommandID)
	}
	return list
}

// lastID is the ID of the last input, if it is no deadline.
func (h *harness) lastID() string { return fmt.Sprint("input-", h.number) }

// An agent takes a note with the ID of its command for the answer, so nothing else may have that ID.
func TestOnlyFinalAnswersNameTheirCommands(t *testing.T) {
	h := newHarness(t, Config{LockTTL: time.Minute})
	require.Equal(t, []string{"input-1"}, h.lock(mira, "a.go").ids(mira))
	require.Equal(t, []string{"input-2"}, h.lock(mira, "b.go").ids(mira))
	require.Equal(t, []string{"input-3"}, h.lock(noor, "a.go").ids(noor), "denied")
	require.Equal(t, []string{""}, h.do("", crewbody.LockAsked{Member: mira, FilePath: "c.go", TTLMS: 1000}).ids(mira), "of a person")

	// Of the two notes of this step, the first says that the lock on c.go has expired.
	h.now = h.now.Add(time.Second)
	open := h.commit(mira, "One")
	require.Equal(t, []string{""}, open.ids(mira))
	require.Len(t, open.actions(), 1)
	one := h.lastID()
	require.Equal(t, []string{""}, h.commit(mira, "Two").ids(mira), "it waits")
	two := h.lastID()
	require.Empty(t, h.unlock(mira, "b.go").ids(mira))
	unlock := h.lastID()
	require.Equal(t, []string{""}, h.do("", crewbody.UnlockAsked{FilePath: "a.go", Force: true}).ids(mira), "a person releases a path")

	e := h.receipt(crewbody.Receipt{ActionID: open.actions()[0].ActionID, Commit: "c"})
	require.Equal(t, []string{one}, e.ids(mira))
	next := e.actions()
	require.Len(t, next, 2, "the release and the second commit")
	e = h.receipt(crewbody.Receipt{ActionID: next[0].ActionID})
	require.Empty(t, e.ids(mira), "the second commit contains the path")
	e = h.receipt(crewbody.Receipt{ActionID: next[1].ActionID, Failed: true})
	require.Equal(t, []string{two}, e.ids(mira))
	require.Equal(t, []string{unlock}, h.receipt(crewbody.Receipt{ActionID: e.actions()[0].ActionID}).ids(mira))
}

func TestUnlockIsAnsweredWhateverBecomesOfTheLock(t *testing.T) {
	for name, c := range map[string]struct {
		ttl     time.Duration
		happens func(h *harness) effects
	}{
		"a person releases it": {time.Hour, func(h *harness) effects { return h.do("", crewbody.UnlockAsked{FilePath: "a.go", Force: true}) }},
		"it expires":           {time.Second, func(h *harness) effects { return h.advance(time.Second) }},
		"the host is silent":   {time.Hour, func(h *harness) effects { return h.advance(answerWithin) }},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Config{LockTTL: c.ttl})
			h.locked(mira, "a.go")
			h.unlock(mira, "a.go")
			first := h.lastID()
			require.Equal(t, []string{"input-3"}, h.unlock(mira, "a.go").ids(mira), "the second one at once")
			require.Contains(t, c.happens(h).ids(mira), first)
			require.Empty(t, h.state().Releases)
		})
	}
}

// Its lead takes a task back from an agent that goes on. The agent waits for the answers to its commands.
func TestAgentWhoseLocksAreReleasedGetsItsAnswers(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go", "b.go")
	open := h.commit(mira, "One").actions()[0]
	one := h.lastID()
	h.commit(mira, "Two")
	two := h.lastID()
	h.unlock(mira, "a.go")
	unlock := h.lastID()
	h.locked(mira, "c.go")
	h.unlock(mira, "c.go")
	other := h.lastID()

	e := h.do("crew/crew-1", crewbody.ReleaseLocks{AgentID: mira.AgentID})
	require.Equal(t, []string{"lock:released"}, e.kinds())
	require.Equal(t, []string{two, other}, e.ids(mira), "c.go is in no commit")
	require.Equal(t, []string{"a.go", "b.go"}, h.held(mira), "the host may be committing them")
	again := h.do("host/dock", crewbody.HostStarted{Host: "dock", Epoch: 2}).actions()
	require.Equal(t, []string{"a.go", "b.go"}, actionBody[crewbody.Commit](t, again[0]).Paths)

	e = h.receipt(crewbody.Receipt{ActionID: open.ActionID, Commit: "c", Files: []string{"a.go", "b.go"}})
	require.Equal(t, []string{"agent:committed", "lock:released", "lock:released"}, e.kinds())
	require.ElementsMatch(t, []string{one, unlock}, e.ids(mira))
	require.Contains(t, e.notes(mira), "Your locks are released")
	require.Empty(t, h.held(mira))
	require.Empty(t, h.state().Commits)
	require.Empty(t, h.state().Releases)
}

// An agent that gets another task meanwhile locks a path of the open commit for it.
func TestPathThatIsLockedAgainIsKeptAfterTheCommit(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go", "b.go")
	open := h.commit(mira, "One").actions()[0]
	h.do("crew/crew-1", crewbody.ReleaseLocks{AgentID: mira.AgentID})
	require.Contains(t, h.lock(mira, "a.go").notes(mira), "is extended")
	e := h.receipt(crewbody.Receipt{ActionID: open.ActionID, Commit: "c"})
	require.Equal(t, "b.go", e.events("lock:released")[0]["filePath"])
	require.Equal(t, []string{"a.go"}, h.held(mira))
	require.Empty(t, h.do("crew/crew-1", crewbody.ReleaseLocks{AgentID: noor.AgentID}), "it has no locks")
}
