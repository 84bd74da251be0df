package crew_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// lock has a person lock a path for an agent of the repository "shop".
func (w *crewDriver) lock(agentID, path string) {
	w.t.Helper()
	m := crewSpawn().Member
	m.AgentID = agentID
	w.number++
	w.locks.Pipe("shop", crewInputOf("", w.number, crewbody.LockAsked{Member: m, FilePath: path}))
	require.Equal(w.t, 1, w.happened("lock:acquired"))
}

// happened returns how many new events have a type. It drops the others.
func (w *crewDriver) happened(kind string) (count int) {
	for _, e := range w.events.Drain() {
		if e.Value.Type == kind {
			count++
		}
	}
	return count
}

// prompts returns the texts of the new prompts of the agent, and endTurn ends the agent's turn.
func (w *crewDriver) prompts() string {
	w.t.Helper()
	var texts []string
	for _, a := range w.actions.Drain() {
		if a.Value.Kind == (crewbody.Send{}).Kind() {
			body, err := crewbody.Decode[crewbody.Send](a.Value.Body)
			require.NoError(w.t, err)
			texts = append(texts, string(body.Blocks))
		}
	}
	return strings.Join(texts, "\n")
}

func (w *crewDriver) endTurn() {
	w.t.Helper()
	s, ok := w.agents.Get(crewAgentID)
	require.True(w.t, ok)
	w.host(crewbody.TurnEnded{Run: w.run, PromptID: s.Turn.GetPromptId(), StopReason: "end_turn"})
}

// startAgain plays the host of an agent that a person restarts.
func (w *crewDriver) startAgain(ready bool) {
	w.t.Helper()
	w.crew(crewbody.Restart{Manual: true})
	w.host(crewbody.Exited{Run: w.run})
	for _, a := range w.actions.Drain() {
		if a.Value.Kind == (crewbody.Start{}).Kind() {
			w.run = a.Value.ActionID
		}
	}
	if ready {
		w.ready()
	}
}

func (w *crewDriver) ready() {
	w.t.Helper()
	w.host(crewbody.Started{Run: w.run})
	w.host(crewbody.SessionReady{Run: w.run, SessionID: "s2"})
}

func TestL06_ExpiredLockIsPurgedOnceAndItsOwnerIsToldIfItRunsOrIsIdle(t *testing.T) {
	const told = `\"a.go\" has expired`
	for _, c := range []struct {
		status string
		become func(*crewDriver)
		told   bool
		after  func(*crewDriver) // makes the agent take what waits for it
	}{
		{view.Running, func(*crewDriver) {}, true, (*crewDriver).endTurn},
		{view.Idle, (*crewDriver).endTurn, true, func(*crewDriver) {}},
		{view.Creating, func(w *crewDriver) { w.startAgain(false) }, false, func(*crewDriver) {}},
		{view.Terminated, func(w *crewDriver) {
			w.crew(crewbody.Terminate{})
			w.host(crewbody.Exited{Run: w.run})
		}, false, func(w *crewDriver) {
			w.startAgain(true)
			w.endTurn()
		}},
		{view.Completed, func(w *crewDriver) { w.host(crewbody.Exited{Run: w.run}) }, false, func(w *crewDriver) {
			w.startAgain(true)
			w.endTurn()
		}},
	} {
		t.Run(c.status, func(t *testing.T) {
			w := newCrewDriver(t)
			c.become(w)
			require.Equal(t, c.status, w.view().Status)
			w.lock(crewAgentID, "a.go")
			w.prompts() // what the agent is told about the new lock
			if c.status == view.Idle {
				w.endTurn()
			}
			w.wait(300*time.Second - time.Millisecond)
			require.Zero(t, w.happened("lock:expired"))
			w.wait(time.Millisecond)
			require.Equal(t, 1, w.happened("lock:expired"))
			if !c.told {
				require.NotContains(t, w.prompts(), told)
			}
			c.after(w)
			require.Equal(t, c.told, strings.Contains(w.prompts(), told))
			w.lock("another", "a.go") // the path is free
			w.wait(299 * time.Second)
			require.Zero(t, w.happened("lock:expired"), "once")
		})
	}
	t.Run("unknown", func(t *testing.T) {
		w := newCrewDriver(t)
		w.lock("unknown", "a.go")
		w.wait(300 * time.Second)
		require.Equal(t, 1, w.happened("lock:expired"))
		_, known := w.agents.Get("unknown")
		require.False(t, known)
		require.Empty(t, w.prompts())
		w.lock(crewAgentID, "a.go")
	})
}
