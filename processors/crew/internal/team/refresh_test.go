package team

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

func TestC06_EachReasonRefreshesAllAndACompactionItsAgentAtOnce(t *testing.T) {
	lock := func(action string) func(*harness) []mailbox.Effect {
		return func(h *harness) []mailbox.Effect {
			return h.by(mailbox.Repository("boats"), crewbody.LockChanged{
				Action: action, Repository: "boats", FilePath: "a.go", AgentID: otherID,
			})
		}
	}
	reasons := map[string]func(*harness) []mailbox.Effect{
		"spawn": func(h *harness) []mailbox.Effect {
			return h.door(crewbody.SpawnAsked{AgentID: "5bab0000-0000-0000-0000-000000000003", RoleID: "tester", ParentID: leadID})
		},
		"terminate": func(h *harness) []mailbox.Effect { return h.door(crewbody.TerminateAsked{AgentID: otherID}) },
		"exit": func(h *harness) []mailbox.Effect {
			return h.by(mailbox.Agent(otherID), crewbody.AgentExited{AgentID: otherID, Cause: crewbody.ExitClean})
		},
		"lock acquired": lock(crewbody.LockAcquired),
		"lock released": lock(crewbody.LockReleased),
		// FlightDeck goes on showing a lock that has expired.
		"lock expired": lock(crewbody.LockExpired),
	}
	newPair := func(t *testing.T) *harness {
		h := newLead(t)
		h.spawn(otherID, "developer", leadID)
		h.status(leadID, view.Running)
		h.wait(time.Minute)
		return h
	}
	for name, cause := range reasons {
		t.Run(name, func(t *testing.T) {
			h := newPair(t)
			require.Empty(t, mailOf[crewbody.Refresh]("", cause(h)), "other changes may follow")
			require.Empty(t, mailOf[crewbody.Refresh]("", h.wait(1999*time.Millisecond)))
			require.Len(t, mailOf[crewbody.Refresh](leadID, h.wait(time.Millisecond)), 1)
			require.Empty(t, mailOf[crewbody.Refresh]("", h.wait(time.Minute)))
		})
	}
	t.Run("compaction", func(t *testing.T) {
		h := newPair(t)
		h.status(otherID, view.Running)
		h.door(crewbody.SpawnAsked{AgentID: "5bab0000-0000-0000-0000-000000000003", RoleID: "tester", ParentID: leadID})
		before := mailOf[crewbody.Refresh](leadID, h.wait(2*time.Second))
		require.Len(t, before, 1)
		effects := h.by(mailbox.Agent(leadID), crewbody.Compacted{AgentID: leadID, Previous: 90_000, Current: 10_000})
		after := mailOf[crewbody.Refresh](leadID, effects)
		require.Len(t, after, 1)
		require.Equal(t, before[0].Digest, after[0].Digest, "the agent's row delivers it though it is unchanged")
		require.Len(t, mailOf[crewbody.Refresh]("", effects), 1, "only its agent")
		require.Empty(t, mailOf[crewbody.Refresh]("", h.wait(time.Minute)))
	})
	t.Run("nothing else", func(t *testing.T) {
		h := newPair(t)
		lock(crewbody.LockDenied)(h)
		h.by(mailbox.Agent(leadID), crewbody.AgentIdle{AgentID: leadID, StopReason: "end_turn"})
		require.Empty(t, mailOf[crewbody.Refresh]("", h.wait(time.Minute)))
	})
}
