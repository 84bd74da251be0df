package memoir

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows"
)

func TestFirstPassWaitsForAnotherOneOnlyForAShortTime(t *testing.T) {
	p := newHarness(t)
	begin := p.Now
	a := sent(t, p.handle(p.ended("a")))
	require.Equal(t, begin.Add(30*time.Minute).UnixMilli(), a.DueMs)
	require.Empty(t, p.handle(p.ended("b")))
	b := sent(t, p.wait())
	require.Equal(t, 10*time.Second, p.Now.Sub(begin))
	require.Equal(t, "b/snapshot/1", b.ID)
	require.Empty(t, b.Snapshot.MemoirContext)

	// Both are based on the same memory, so one of them is sent again, with that of the other one.
	require.Empty(t, p.handle(p.answer(b, "b")))
	again := sent(t, p.handle(p.answer(a, "a")))
	require.Equal(t, "a/snapshot/2", again.ID)
	require.Equal(t, "b", again.Snapshot.MemoirContext)
	require.Empty(t, p.handle(p.answer(again, "b a")))
	require.Empty(t, p.Read().Pending)
}

func TestFirstPassIsSentAtOnceWithoutPatience(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.Patience = 0 })
	for _, end := range []string{"a", "b", "c"} {
		require.Equal(t, end+"/snapshot/1", sent(t, p.handle(p.ended(end))).ID)
	}
}

func TestFurtherPassesAreSentOneAtATime(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.Patience = 0 })
	a, b, c := sent(t, p.handle(p.ended("a"))), sent(t, p.handle(p.ended("b"))), sent(t, p.handle(p.ended("c")))
	require.Empty(t, p.handle(p.answer(a, "a")))
	b = sent(t, p.handle(p.answer(b, "b")))
	require.Equal(t, "b/snapshot/2", b.ID)
	require.Equal(t, "a", b.Snapshot.MemoirContext)
	require.Empty(t, p.handle(p.answer(c, "c")), "b is open")
	at, _ := rows.Deadline(p.Row)
	require.Equal(t, b.DueMs, at, "c has no time: it waits for the answer of b")
	c = sent(t, p.handle(p.answer(b, "a b")))
	require.Equal(t, "c/snapshot/2", c.ID)
	require.Equal(t, "a b", c.Snapshot.MemoirContext)
	require.Empty(t, p.handle(p.answer(c, "a b c")))
	require.Empty(t, p.Read().Pending)
}

// A user whose sessions overlap all the time: open passes that cannot succeed do not keep the further passes of others waiting.
func TestFurtherPassIsSentWhileOnlyPassesOfOldVersionsAreOpen(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.Patience = 0 })
	a := sent(t, p.handle(p.ended("a")))
	sent(t, p.handle(p.ended("b")))
	require.Empty(t, p.handle(p.failure(a)))
	p.Now = p.Now.Add(p.config.Backoff)
	require.Empty(t, p.handle(deadlineCame{}), "b may still succeed")
	require.Equal(t, "a/snapshot/2", sent(t, p.handle(p.edit("x"))).ID)
}

func TestAnswersWithoutAVersionBelongToThePassesInTheOrderOfSending(t *testing.T) {
	p := newHarness(t)
	sent(t, p.handle(p.ended("a")))
	require.Empty(t, p.handle(p.ended("b")))
	p.config.Patience = 0
	sent(t, p.handle(p.ended("c")))
	sent(t, p.wait()) // b
	require.Empty(t, p.handle(p.foreign("a")))
	require.Equal(t, "a", p.Read().Memory)
	c := sent(t, p.handle(p.foreign("c")))
	require.Equal(t, "c/snapshot/2", c.ID, "its first memory is based on the one before a")
	require.Empty(t, p.handle(p.foreign("b")))
	require.Len(t, p.Read().Pending, 3, "a is not done before all have been answered")
	b := sent(t, p.handle(p.foreign("a c")))
	require.Equal(t, "b/snapshot/2", b.ID)
	require.Len(t, p.Read().Pending, 1, "a and c are done")
	require.Empty(t, p.handle(p.foreign("a c b")))
	require.Empty(t, p.Read().Pending)
}

// The updater leaves out the first of two snapshots, and the answer of the second one is taken for that of the first one.
func TestSessionsAreRepeatedIfAnAnswerIsMissing(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.Patience = 0 })
	sent(t, p.handle(p.ended("a")))
	sent(t, p.handle(p.ended("b")))
	require.Empty(t, p.handle(p.foreign("b")))
	a := sent(t, p.wait())
	require.Equal(t, "a/snapshot/2", a.ID)
	require.Equal(t, "b", a.Snapshot.MemoirContext)
	require.Empty(t, p.handle(p.foreign("b a")))
	require.Equal(t, "b/snapshot/2", sent(t, p.wait()).ID, "its pass has failed, so it waits longer")
	require.Empty(t, p.handle(p.foreign("b a")))
	require.Empty(t, p.Read().Pending)
}

func TestBlankAnswerIsNotTheEndOfASessionIfAnAnswerIsMissing(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.Patience = 0 })
	sent(t, p.handle(p.ended("a")))
	sent(t, p.handle(p.ended("b")))
	require.Empty(t, p.handle(p.foreign(" ")))
	require.Equal(t, "a/snapshot/2", sent(t, p.wait()).ID)
}

func TestAllOpenPassesTimeOut(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.Patience = 0 })
	for i := range 5 {
		sent(t, p.handle(p.ended("s"+strconv.Itoa(i))))
	}
	require.Empty(t, p.wait())
	for _, s := range p.Read().Pending {
		require.False(t, s.Sent)
		require.EqualValues(t, 1, s.Failures)
	}
	require.Equal(t, "s0/snapshot/2", sent(t, p.wait()).ID)
	require.Equal(t, "s1/snapshot/2", sent(t, p.wait()).ID, "after the timeout of s0")
}

func TestForgottenUserWithSeveralOpenPasses(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.Patience = 0 })
	for _, end := range []string{"a", "b", "c"} {
		sent(t, p.handle(p.ended(end)))
	}
	require.Empty(t, p.handle(p.foreign("secret a")))
	require.Empty(t, p.handle(p.tombstone()))
	require.Len(t, p.Read().Pending, 2, "b and c are open")
	d := sent(t, p.handle(p.ended("d")))
	require.Empty(t, d.Snapshot.MemoirContext)
	require.Empty(t, p.handle(p.foreign("secret b")))
	require.Empty(t, p.handle(p.foreign("secret c")))
	require.Empty(t, p.Read().Memory)
	require.Empty(t, p.handle(p.foreign("d")))
	require.Equal(t, "d", p.Read().Memory)
	require.Empty(t, p.Read().Pending)
	require.Empty(t, p.wait())
	require.Empty(t, p.Parts)
}

func TestEditWhileSeveralPassesAreOpen(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.Patience = 0 })
	sent(t, p.handle(p.ended("a")))
	sent(t, p.handle(p.ended("b")))
	require.Empty(t, p.handle(p.foreign("a")))
	require.Empty(t, p.handle(p.edit("edited")))
	b := sent(t, p.handle(p.foreign("b")))
	require.Equal(t, "b/snapshot/2", b.ID)
	require.Equal(t, "edited", b.Snapshot.MemoirContext)
	require.Len(t, p.Read().Pending, 1, "a is done: the edit came after it")
}
