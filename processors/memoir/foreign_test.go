package memoir

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
)

// A record without a version is taken for the answer of the open pass. The answer of the worker shows that it was not.
func TestMemoryWithoutAVersionDoesNotEndTheSessionOfAWorkerWithVersions(t *testing.T) {
	for name, others := range map[string]bool{"alone": false, "while another pass is open": true} {
		t.Run(name, func(t *testing.T) {
			p := newHarness(t, func(c *Config) { c.Patience = 0 })
			a := sent(t, p.handle(p.ended("a")))
			if others {
				sent(t, p.handle(p.ended("b")))
			}
			require.Empty(t, p.handle(p.foreign("by hand")))
			require.Equal(t, "by hand", p.Read().Memory)
			require.Empty(t, p.handle(p.ended("a")), "a repeat")
			again := sent(t, p.handle(p.answer(a, "a")))
			require.Equal(t, "a/snapshot/2", again.ID)
			require.Equal(t, "by hand", again.Snapshot.MemoirContext, "the text is kept as an edit")
			require.Equal(t, conversation("a"), again.Snapshot.Messages)
			require.Empty(t, p.handle(p.answer(a, "a")), "a repeat")
			require.Empty(t, p.handle(p.answer(again, "by hand, a")))
			require.Equal(t, "by hand, a", p.Read().Memory)
			require.Empty(t, p.handle(p.answer(a, "a")), "a repeat after the end")
			require.Empty(t, p.handle(p.ended("a")), "a repeat after the end")
		})
	}
}

func TestBlankMemoryWithoutAVersionDoesNotEndTheSessionOfAWorkerWithVersions(t *testing.T) {
	p := newHarness(t)
	a := sent(t, p.handle(p.ended("a")))
	require.Empty(t, p.handle(p.foreign(" ")))
	require.Len(t, p.Read().Settled, 1)
	require.Empty(t, p.handle(p.answer(a, "a")))
	require.Equal(t, "a", p.Read().Memory)
	require.Empty(t, p.Read().Settled)
	require.Empty(t, p.Parts)
	require.Empty(t, p.handle(p.answer(a, "a")), "a repeat")
}

func TestTooLongAnswerAfterAMemoryWithoutAVersionFailsThePass(t *testing.T) {
	p := newHarness(t)
	a := sent(t, p.handle(p.ended("a")))
	require.Empty(t, p.handle(p.foreign("by hand")))
	require.Equal(t, reasonMemorySize, machinetest.Reason(t, p.handle(p.answer(a, string(make([]byte, p.config.Limit+1))))))
	require.Equal(t, "a/snapshot/2", sent(t, p.wait()).ID)
}

func TestFailureAfterAMemoryWithoutAVersionFailsThePass(t *testing.T) {
	p := newHarness(t)
	a := sent(t, p.handle(p.ended("a")))
	require.Empty(t, p.handle(p.foreign("by hand")))
	require.Empty(t, p.handle(p.failure(a)))
	again := sent(t, p.wait())
	require.Equal(t, "a/snapshot/2", again.ID)
	require.Equal(t, "by hand", again.Snapshot.MemoirContext)
	require.Empty(t, p.handle(p.foreign("by hand again")))
	require.Empty(t, p.handle(p.failure(a)), "a repeat")
	require.Len(t, p.Read().Settled, 1)
}

// The snapshot is kept until the pass would have timed out: workers with versions have answered by then.
func TestSnapshotOfASessionThatAMemoryWithoutAVersionEndedIsKeptUntilItsDeadline(t *testing.T) {
	p := newHarness(t)
	a := sent(t, p.handle(p.ended("a")))
	require.Empty(t, p.handle(p.foreign("a")))
	require.Empty(t, p.Read().Pending)
	require.Len(t, p.Parts, 1)
	require.Empty(t, p.wait())
	require.Equal(t, a.DueMs, p.Now.UnixMilli())
	require.Empty(t, p.Parts)
	require.Empty(t, p.Read().Settled)
	require.Empty(t, p.handle(p.ended("a")), "a repeat")
	require.Equal(t, reasonForeign, machinetest.Reason(t, p.handle(p.answer(a, "late"))), "what comes later is not lost")
	require.Equal(t, reasonForeign, machinetest.Reason(t, p.handle(p.failure(a))))
	require.Equal(t, "a", p.Read().Memory)
}

func TestAnswerAfterItsDeadlineReplacesAMemoryThatDidNotChange(t *testing.T) {
	p := newHarness(t)
	a := sent(t, p.handle(p.ended("a")))
	require.Empty(t, p.handle(p.foreign(" ")))
	require.Empty(t, p.wait())
	require.Empty(t, p.handle(p.answer(a, "a")))
	require.Equal(t, "a", p.Read().Memory)
	require.Empty(t, p.handle(p.failure(a)), "it is in the memory")
}

func TestKeptSnapshotsCountForTheLimitAndGoFirst(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.PendingLimit, c.Patience = 2, 0 })
	a := sent(t, p.handle(p.ended("a")))
	require.Empty(t, p.handle(p.foreign("a")))
	sent(t, p.handle(p.ended("b")))
	require.Len(t, p.Parts, 2)
	sent(t, p.handle(p.ended("c")))
	require.Len(t, p.Parts, 2)
	require.Empty(t, p.Read().Settled)
	require.Equal(t, reasonForeign, machinetest.Reason(t, p.handle(p.answer(a, "a"))))
}

func TestKeptSnapshotOfAForgottenUserIsDeleted(t *testing.T) {
	p := newHarness(t)
	a := sent(t, p.handle(p.ended("a")))
	require.Empty(t, p.handle(p.foreign("secret a")))
	require.Empty(t, p.handle(p.tombstone()))
	require.Empty(t, p.Parts)
	require.Empty(t, p.handle(p.answer(a, "secret a")))
	require.Empty(t, p.handle(p.failure(a)))
	require.Empty(t, p.Read().Memory)
}

func TestRowStaysWhileItKeepsASnapshot(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.RememberFor = time.Minute })
	sent(t, p.handle(p.ended("a")))
	require.Empty(t, p.handle(p.foreign(" ")))
	p.Now = p.Now.Add(2 * time.Minute)
	require.Empty(t, p.handle(deadlineCame{}))
	require.Len(t, p.Parts, 1)
	require.Empty(t, p.wait())
	require.Nil(t, p.Row)
}

// Every record without a version is taken for an answer. In the end the session is dead-lettered.
func TestSessionIsGivenUpIfMemoriesWithoutAVersionReplaceEveryPass(t *testing.T) {
	p := newHarness(t)
	s := sent(t, p.handle(p.ended("a")))
	for range maxConflicts - 1 {
		require.Empty(t, p.handle(p.foreign("by hand")))
		s = sent(t, p.handle(p.answer(s, "a")))
	}
	require.Empty(t, p.handle(p.foreign("by hand")))
	require.Equal(t, reasonConflicts, deadOf(t, p.handle(p.answer(s, "a"))[0]).Reason)
	require.Empty(t, p.handle(p.answer(s, "a")), "it is dead-lettered already")
	require.Empty(t, p.handle(p.failure(s)), "it is dead-lettered already")
	require.Empty(t, p.Parts)
}

// The updater fails once. What it writes for later sessions is not taken for the answers to earlier ones for ever: without the
// time limit of a pass, the memory gets what every session says, also that which was left out.
func TestOneMissOfFlightDecksUpdaterDoesNotFreezeTheMemory(t *testing.T) {
	for name, overlap := range map[string]bool{"one session after the other": false, "overlapping sessions": true} {
		t.Run(name, func(t *testing.T) {
			p := newHarness(t, func(c *Config) { c.Patience = 0 })
			begin := p.Now
			queue := []snapshotSent{}
			add := func(es effects) {
				for _, e := range es {
					queue = append(queue, sentOf(t, e))
				}
			}
			answer := func() {
				for len(queue) > 0 {
					s := queue[0]
					queue = queue[1:]
					add(p.handle(p.foreign(strings.TrimSpace(s.Snapshot.MemoirContext + "\n- " + *s.Snapshot.SessionID))))
				}
			}
			add(p.handle(p.ended("missed")))
			queue = nil
			for _, end := range []string{"a", "b", "c", "d", "e"} {
				add(p.handle(p.ended(end)))
				if !overlap || end == "b" || end == "d" {
					answer()
				}
			}
			answer()
			for _, end := range []string{"missed", "a", "b", "c", "d", "e"} {
				require.Contains(t, p.Read().Memory, "- "+end)
			}
			require.Empty(t, p.Read().Pending)
			require.Equal(t, begin, p.Now)
		})
	}
}
