package memoir

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

func TestSnapshotHasTheMemoryAndItsVersion(t *testing.T) {
	p := newHarness(t)
	require.Empty(t, p.handle(p.edit("likes tea")))
	s := sent(t, p.handle(p.ended("a")))
	require.Equal(t, "a/snapshot/1", s.ID)
	require.Equal(t, user, s.Key)
	require.Equal(t, "likes tea", s.Snapshot.MemoirContext)
	require.Equal(t, p.Read().MemoryVersion, s.Version)
	require.Equal(t, conversation("a"), s.Snapshot.Messages)
	require.Empty(t, p.handle(p.ended("a")), "a repeat")
	require.Empty(t, p.handle(p.answer(s, "likes tea and boats")))
	require.Equal(t, "likes tea and boats", p.Read().Memory)
	require.Empty(t, p.Read().Pending)
	require.Empty(t, p.handle(p.ended("a")), "a repeat after its end")
}

func TestNextSnapshotHasTheMemoryOfTheOneBefore(t *testing.T) {
	p := newHarness(t)
	a := sent(t, p.handle(p.ended("a")))
	require.Empty(t, p.handle(p.ended("b")))
	b := sent(t, p.handle(p.answer(a, "a")))
	require.Equal(t, "b/snapshot/1", b.ID)
	require.Equal(t, "a", b.Snapshot.MemoirContext, "b is merged into the memory of a")
}

func TestMemoryOfAnOldVersionIsSentBack(t *testing.T) {
	for name, foreign := range map[string]bool{"with a version": false, "without a version": true} {
		t.Run(name, func(t *testing.T) {
			p := newHarness(t)
			answer := func(s snapshotSent, text string) memoryWritten {
				if foreign {
					return p.foreign(text)
				}
				return p.answer(s, text)
			}
			first := sent(t, p.handle(p.ended("a")))
			require.Empty(t, p.handle(p.edit("edited")))
			again := sent(t, p.handle(answer(first, "a")))
			require.Equal(t, "a/snapshot/2", again.ID)
			require.Equal(t, "edited", again.Snapshot.MemoirContext)
			require.Equal(t, "edited", p.Read().Memory)
			if !foreign {
				require.Empty(t, p.handle(p.answer(first, "a")), "a repeat opens no further pass")
			}
			require.Empty(t, p.handle(answer(again, "edited, a")))
			require.Equal(t, "edited, a", p.Read().Memory)
			require.Empty(t, p.Read().Pending)
		})
	}
}

func TestMemoryThatChangesDuringEveryPassIsGivenUp(t *testing.T) {
	p := newHarness(t)
	s := sent(t, p.handle(p.ended("a")))
	for range maxConflicts - 1 {
		p.handle(p.edit("edited"))
		s = sent(t, p.handle(p.answer(s, "a")))
	}
	p.handle(p.edit("edited"))
	require.Equal(t, reasonConflicts, deadOf(t, p.handle(p.answer(s, "a"))[0]).Reason)
}

func TestMemoryWithoutAnOpenPassReplacesTheMemory(t *testing.T) {
	p := newHarness(t)
	e := p.foreign("from FlightDeck")
	require.Empty(t, p.handle(e))
	require.Equal(t, "from FlightDeck", p.Read().Memory)
	require.Empty(t, p.handle(p.edit("edited")))
	require.Empty(t, p.handle(e), "a repeat")
	require.Empty(t, p.handle(p.foreign(" \n")), "a blank one")
	require.Equal(t, "edited", p.Read().Memory)
	require.Empty(t, p.handle(p.edit("")))
	require.Empty(t, p.Read().Memory, "a person can delete the text")
}

func TestBlankMemoryFinishesTheSession(t *testing.T) {
	p := newHarness(t)
	p.handle(p.edit("likes tea"))
	before := p.Read().MemoryVersion
	require.Empty(t, p.handle(p.answer(sent(t, p.handle(p.ended("a"))), " ")))
	require.Equal(t, "likes tea", p.Read().Memory)
	require.Equal(t, before, p.Read().MemoryVersion)
	require.Empty(t, p.Read().Pending)
}

func TestTooLongMemoryFailsThePass(t *testing.T) {
	p := newHarness(t)
	s := sent(t, p.handle(p.ended("a")))
	long := strings.Repeat("x", p.config.Limit+1)
	require.Equal(t, reasonMemorySize, machinetest.Reason(t, p.handle(p.answer(s, long))))
	require.Equal(t, reasonMemorySize, machinetest.Reason(t, p.handle(p.edit(long))))
	require.Empty(t, p.Read().Memory)
	require.Equal(t, "a/snapshot/2", sent(t, p.wait()).ID)
	require.Equal(t, reasonMemorySize, machinetest.Reason(t, p.handle(p.answer(s, long))), "a repeat")
	require.True(t, p.Read().Pending[0].Sent, "it does not fail the next pass")
	require.Equal(t, reasonMemorySize, machinetest.Reason(t, p.handle(p.foreign(long))))
	require.EqualValues(t, 2, p.Read().Pending[0].Failures)
}

func TestFailedPassesAreRepeatedWithABackoffAndGivenUp(t *testing.T) {
	p := newHarness(t)
	begin := p.Now
	s := sent(t, p.handle(p.ended("a")))
	require.Empty(t, p.handle(p.failure(s)))
	require.Empty(t, p.handle(p.failure(s)), "a repeat")
	s = sent(t, p.wait())
	require.Equal(t, "a/snapshot/2", s.ID)
	require.Equal(t, time.Minute, p.Now.Sub(begin))
	require.Empty(t, p.wait(), "no memory came in time")
	require.Equal(t, 31*time.Minute, p.Now.Sub(begin))
	s = sent(t, p.wait())
	require.Equal(t, 33*time.Minute, p.Now.Sub(begin))
	dead := deadOf(t, p.handle(p.failure(s))[0])
	require.Equal(t, reasonGivenUp+failedWorker, dead.Reason)
	require.Equal(t, p.ended("a").Value, dead.Value)
	require.Empty(t, p.handle(p.ended("a")), "a repeat of what was given up")
	require.Empty(t, p.handle(p.answer(s, "a")))
	require.Equal(t, "a", p.Read().Memory, "a late memory is not lost")
}

func TestOtherSessionsGoFirstDuringABackoff(t *testing.T) {
	p := newHarness(t)
	a := sent(t, p.handle(p.ended("a")))
	require.Empty(t, p.handle(p.ended("b")))
	b := sent(t, p.handle(p.failure(a)))
	require.Equal(t, "b/snapshot/1", b.ID)
	require.Empty(t, p.handle(p.answer(b, "b")))
	require.Equal(t, "b", sent(t, p.wait()).Snapshot.MemoirContext)
}

func TestForgottenUserHasNothingLeft(t *testing.T) {
	for name, foreign := range map[string]bool{"with a version": false, "without a version": true} {
		t.Run(name, func(t *testing.T) {
			p := newHarness(t)
			require.Empty(t, p.handle(p.tombstone()))
			require.Nil(t, p.Row, "nothing to forget")
			p.handle(p.edit("a secret"))
			a := sent(t, p.handle(p.ended("a")))
			p.handle(p.ended("b"))
			require.Empty(t, p.handle(p.tombstone()))
			require.Empty(t, p.Read().Memory)
			require.Empty(t, p.Parts, "the snapshots are deleted")
			require.Empty(t, p.handle(p.ended("b")), "a repeat")
			require.Empty(t, p.handle(p.ended("c")), "waits for the open pass")
			late := p.answer(a, "a secret")
			if foreign {
				late = p.foreign("a secret")
			}
			c := sent(t, p.handle(late))
			require.Equal(t, "c/snapshot/1", c.ID)
			require.Empty(t, c.Snapshot.MemoirContext, "the late memory is ignored")
			require.Empty(t, p.handle(p.answer(a, "a secret")))
			require.Empty(t, p.handle(p.answer(c, "")))
			p.wait()
			require.Nil(t, p.Row, "a row without a memory is deleted in the end")
		})
	}
}

func TestOpenPassOfAForgottenUserEndsAtItsDeadline(t *testing.T) {
	p := newHarness(t)
	sent(t, p.handle(p.ended("a")))
	require.Empty(t, p.handle(p.tombstone()))
	require.Empty(t, p.wait())
	require.Empty(t, p.Read().Pending)
}

// After a crash the topics can be read in another order.
func TestMemoryBeforeItsSession(t *testing.T) {
	p, before := newHarness(t), newHarness(t)
	p.handle(p.edit("x"))
	before.Restore(&p.World)
	a := sent(t, p.handle(p.ended("a")))
	require.Empty(t, before.handle(p.answer(a, "x, a")))
	require.Equal(t, "x, a", before.Read().Memory)
	require.Empty(t, before.handle(p.ended("a")), "its content is in the memory")
	stale := p.answer(a, "x, b")
	stale.ID = "b/snapshot/1/memory"
	require.Equal(t, reasonUnknown, machinetest.Reason(t, before.handle(stale)))
}

// A crash has taken the row back to an earlier pass, and other records were read meanwhile: the next pass has a new ID.
func TestPassNumbersOfBeforeACrashAreNotUsedAgain(t *testing.T) {
	p, before := newHarness(t), newHarness(t)
	first := sent(t, p.handle(p.ended("a")))
	before.Restore(&p.World)
	p.handle(p.edit("x"))
	second := sent(t, p.handle(p.answer(first, "a")))
	before.handle(p.edit("y"))
	third := sent(t, before.handle(p.answer(second, "x, a")))
	require.Equal(t, "a/snapshot/3", third.ID)
}

func TestVersionsOfDifferentHistoriesDiffer(t *testing.T) {
	require.NotEqual(t, versionAfter(0, "a"), versionAfter(0, "b"))
	require.NotEqual(t, versionAfter(versionAfter(0, "a"), "b"), versionAfter(versionAfter(0, "b"), "b"))
	require.Equal(t, versionAfter(0, "a"), versionAfter(0, "a"))
}

func TestRecordsWithoutASessionAreDeadLettered(t *testing.T) {
	p := newHarness(t)
	bad := p.edit("x")
	bad.Version = "new"
	require.Equal(t, reasonVersion, machinetest.Reason(t, p.handle(bad)))
	bad.Version = "0"
	require.Equal(t, reasonUnknown, machinetest.Reason(t, p.handle(bad)), "the ID names no snapshot")
	require.Equal(t, reasonUnknown, machinetest.Reason(t, p.handle(passFailed{p.record("x", []byte("{}"))})))
	require.Equal(t, reasonTombstone, machinetest.Reason(t, p.handle(passFailed{p.record("x", nil)})))
	require.Equal(t, reasonTombstone, machinetest.Reason(t, p.handle(sessionEnded{p.record("x", nil), topics.MemoirSnapshot{}})))
	require.Nil(t, p.Row)
}

func TestSnapshotWithALargeMemoryLosesItsOldestMessages(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.RecordLimit, c.Limit = 128<<10, 64<<10 })
	memory := strings.Repeat("x", p.config.Limit)
	p.handle(p.edit(memory))
	e := p.ended("a")
	var list []string
	for i := range 40 {
		list = append(list, `{"role":"user","content":"`+strings.Repeat(string(rune('a'+i%26)), 1000)+`"}`)
	}
	history := topics.Raw("[" + strings.Join(list, ",") + "]")
	e.Snapshot.Messages, e.Snapshot.ThinkResponse.PreviousMessages = history, history
	raw, err := p.topics.MemoirSessions.Codec().Marshal(e.Snapshot)
	require.NoError(t, err)
	e.Value = raw
	s := sent(t, p.handle(e)).Snapshot
	require.Equal(t, memory, s.MemoirContext)
	require.Equal(t, history, s.ThinkResponse.PreviousMessages, "the copy is cut first")
	kept, err := topics.Elements(s.Messages)
	require.NoError(t, err)
	require.NotEmpty(t, kept)
	require.Less(t, len(kept), 40)
	require.Equal(t, list[39], string(kept[len(kept)-1]), "the newest stay")
	raw, err = p.topics.MemoirSessions.Codec().Marshal(s)
	require.NoError(t, err)
	require.LessOrEqual(t, len(raw), p.config.RecordLimit-envelope)
}
