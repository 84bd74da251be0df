package team

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

func TestC06_EachReasonRefreshesAllAndACompactionItsAgentAtOnce(t *testing.T) {
	lock := func(action string) func(*harness) []mailbox.Effect {
		return func(h *harness) []mailbox.Effect {
			return h.by(mailbox.Repository("boats"), topics.CrewLockChanged{
				Action: action, Repository: "boats", FilePath: "a.go", AgentID: otherID,
			})
		}
	}
	reasons := map[string]func(*harness) []mailbox.Effect{
		"spawn": func(h *harness) []mailbox.Effect {
			return h.door(topics.CrewSpawnAsked{AgentID: "5bab0000-0000-0000-0000-000000000003", RoleID: "tester", ParentID: leadID})
		},
		"terminate": func(h *harness) []mailbox.Effect { return h.door(topics.CrewTerminateAsked{AgentID: otherID}) },
		"exit": func(h *harness) []mailbox.Effect {
			return h.by(mailbox.Agent(otherID), topics.CrewAgentExited{AgentID: otherID, Cause: topics.CrewExitClean})
		},
		"lock acquired": lock(topics.CrewLockAcquired),
		"lock released": lock(topics.CrewLockReleased),
		// FlightDeck goes on showing a lock that has expired.
		"lock expired": lock(topics.CrewLockExpired),
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
			require.Empty(t, mailOf[topics.CrewRefresh]("", cause(h)), "other changes may follow")
			require.Empty(t, mailOf[topics.CrewRefresh]("", h.wait(1999*time.Millisecond)))
			require.Len(t, mailOf[topics.CrewRefresh](leadID, h.wait(time.Millisecond)), 1)
			require.Empty(t, mailOf[topics.CrewRefresh]("", h.wait(time.Minute)))
		})
	}
	t.Run("compaction", func(t *testing.T) {
		h := newPair(t)
		h.status(otherID, view.Running)
		h.door(topics.CrewSpawnAsked{AgentID: "5bab0000-0000-0000-0000-000000000003", RoleID: "tester", ParentID: leadID})
		before := mailOf[topics.CrewRefresh](leadID, h.wait(2*time.Second))
		require.Len(t, before, 1)
		effects := h.by(mailbox.Agent(leadID), topics.CrewCompacted{AgentID: leadID, Previous: 90_000, Current: 10_000})
		after := mailOf[topics.CrewRefresh](leadID, effects)
		require.Len(t, after, 1)
		require.Equal(t, before[0].Digest, after[0].Digest, "the agent's row delivers it though it is unchanged")
		require.Len(t, mailOf[topics.CrewRefresh]("", effects), 1, "only its agent")
		require.Empty(t, mailOf[topics.CrewRefresh]("", h.wait(time.Minute)))
	})
	t.Run("nothing else", func(t *testing.T) {
		h := newPair(t)
		lock(topics.CrewLockDenied)(h)
		h.by(mailbox.Agent(leadID), topics.CrewAgentIdle{AgentID: leadID, StopReason: "end_turn"})
		require.Empty(t, mailOf[topics.CrewRefresh]("", h.wait(time.Minute)))
	})
}
