package memoir

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/turntable-streams/turntable/internal/rows/memoirrow"
)

func TestOldestSessionThatHasHadAPassIsGivenUpAtTheLimit(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.PendingLimit, c.Patience = 2, 0 })
	a := sent(t, p.handle(p.ended("a")))
	sent(t, p.handle(p.ended("b")))
	effects := p.handle(p.ended("c"))
	require.Len(t, effects, 2)
	dead := effects[0].(snapshotDead)
	require.Equal(t, "a", dead.End)
	require.Equal(t, reasonTooMany, dead.Reason)
	require.Equal(t, p.ended("a").Value, dead.Value)
	require.Equal(t, "c/snapshot/1", effects[1].(snapshotSent).ID)
	require.Len(t, p.state().Pending, 2)
	require.Empty(t, p.handle(p.answer(a, "a")))
	require.Equal(t, "a", p.state().Memory, "a late memory is not lost")
}

// A session that waits for a further pass is given up before one that is with a worker.
func TestSessionsWithAWorkerAreGivenUpLast(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.PendingLimit, c.Patience = 2, 0 })
	sent(t, p.handle(p.ended("a")))
	b := sent(t, p.handle(p.ended("b")))
	require.Empty(t, p.handle(p.failure(b)))
	require.Equal(t, "b", p.handle(p.ended("c"))[0].(snapshotDead).End)
}

func TestSessionsThatEndTogetherAreSentBeforeTheirPatienceAtTheLimit(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.PendingLimit = 2 })
	sent(t, p.handle(p.ended("a")))
	require.Empty(t, p.handle(p.ended("b")))
	effects := p.handle(p.ended("c"))
	require.Len(t, effects, 2)
	require.Equal(t, "a", effects[0].(snapshotDead).End)
	require.Equal(t, "b/snapshot/1", effects[1].(snapshotSent).ID)
}

// A snapshot that cannot be kept for a further pass is sent once.
func TestSnapshotThatDoesNotFitIsSentOnceAndGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		inline bool
		size   int
		reason string
	}{
		"into the row":    {true, 300 << 10, reasonNoRoom},
		"into its record": {false, 1 << 20, reasonTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			p := newHarness(t)
			p.inline = c.inline
			e := p.ended("a")
			e.Snapshot.Messages = conversation(strings.Repeat("x", c.size))
			raw, err := snapshots().Marshal(e.Snapshot)
			require.NoError(t, err)
			e.Value = raw
			effects := p.handle(e)
			require.Len(t, effects, 2)
			s := effects[0].(snapshotSent)
			require.Equal(t, "a/snapshot/1", s.ID)
			require.Equal(t, c.reason, effects[1].(snapshotDead).Reason)
			require.Empty(t, p.state().Pending)
			require.Empty(t, p.handle(e), "a repeat")
			require.Empty(t, p.handle(p.answer(s, "a")))
			require.Equal(t, "a", p.state().Memory, "its memory is not lost")
		})
	}
}

// The snapshots of sessions without parts are stored in the row itself.
func TestSessionsAreGivenUpIfTheirSnapshotsFillTheRow(t *testing.T) {
	o := newOutage(t)
	o.inline = true
	for i := range 20 {
		e := o.ended(fmt.Sprint("s", i))
		e.Snapshot.Messages = conversation(strings.Repeat("x", 100<<10))
		raw, err := snapshots().Marshal(e.Snapshot)
		require.NoError(t, err)
		e.Value = raw
		o.apply(e)
	}
	require.LessOrEqual(t, len(o.row), o.config.RecordLimit/4+(1<<10))
	o.advance(o.config.Patience)
	o.check(20)
}

// FlightDeck's updater answers the snapshots of sessions that were given up meanwhile too.
func TestAnswersOfGivenUpSessionsAreNotTakenForThoseOfOthers(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.PendingLimit, c.Patience = 2, 0 })
	for _, end := range []string{"a", "b", "c", "d"} {
		p.handle(p.ended(end))
	}
	require.EqualValues(t, 2, p.state().Abandoned)
	require.Equal(t, []effect{deadLetter{reasonAbandoned}}, p.handle(p.foreign("a")))
	require.Empty(t, p.handle(p.foreign(" ")), "nothing to keep of b")
	require.Zero(t, p.state().Abandoned)
	require.Empty(t, p.handle(p.foreign("c")))
	require.Equal(t, "c", p.state().Memory)
	require.Equal(t, "d/snapshot/2", sent(t, p.handle(p.foreign("d"))).ID)
	require.Empty(t, p.handle(p.foreign("c d")))
	require.Empty(t, p.state().Pending)
	require.Equal(t, "c d", p.state().Memory)
}

// The updater leaves out a and answers b, which is given up then: the answer was taken for that of a.
func TestSessionsAreRepeatedIfTheAnswerOfAGivenUpOneIsMissing(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.Patience = 0 })
	sent(t, p.handle(p.ended("a")))
	sent(t, p.handle(p.ended("b")))
	require.Empty(t, p.handle(p.foreign("b")))
	p.abandonOpen("b")
	require.Len(t, p.state().Pending, 1, "it is not known whether a was answered")
	a := sent(t, p.wait())
	require.Equal(t, "a/snapshot/2", a.ID)
	require.Zero(t, p.state().Abandoned)
	require.Empty(t, p.handle(p.foreign("b a")))
	require.Empty(t, p.state().Pending)
}

// abandonOpen gives up a session that is with a worker.
func (p *harness) abandonOpen(end string) {
	p.tb.Helper()
	t := &transition{row: p.state(), key: user, parts: p, now: p.now, config: p.config}
	t.abandon(t.find(end), reasonTooMany)
	t.settle()
	t.row.DeadlineMs = t.deadline()
	for _, n := range t.out.Unused {
		delete(p.stored, n)
	}
	var err error
	p.row, err = memoirrow.Table.Marshal(t.row)
	require.NoError(p.tb, err)
}

func TestAnswersOfGivenUpSessionsOfAForgottenUserAreIgnored(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.PendingLimit, c.Patience = 1, 0 })
	sent(t, p.handle(p.ended("a")))
	p.handle(p.ended("b"))
	require.Empty(t, p.handle(p.tombstone()))
	require.Len(t, p.handle(p.ended("c")), 1, "the end of b needs no letter: the user is forgotten")
	require.Empty(t, p.handle(p.foreign("secret a")))
	require.Empty(t, p.handle(p.foreign("secret b")))
	require.Empty(t, p.state().Memory)
	require.Empty(t, p.handle(p.foreign("c")))
	require.Equal(t, "c", p.state().Memory)
}

// The letter of a given-up session has its content, so an answer of an old version needs none.
func TestLateMemoryOfAGivenUpSessionWithAnOldVersionIsIgnored(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.PendingLimit, c.Patience = 1, 0 })
	a := sent(t, p.handle(p.ended("a")))
	p.handle(p.ended("b"))
	p.handle(p.edit("edited"))
	require.Empty(t, p.handle(p.answer(a, "a")))
	require.Equal(t, "edited", p.state().Memory)
}

// The memory of a was taken for that of the given-up session, and the other way round.
func TestSessionIsRepeatedAfterOneThatWasSentOnceBehindIt(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.Patience = 0 })
	p.inline = true
	sent(t, p.handle(p.ended("a")))
	big := p.ended("b")
	big.Snapshot.Messages = conversation(strings.Repeat("x", 300<<10))
	raw, err := snapshots().Marshal(big.Snapshot)
	require.NoError(t, err)
	big.Value = raw
	require.Len(t, p.handle(big), 2)
	require.Equal(t, []effect{deadLetter{reasonAbandoned}}, p.handle(p.foreign("a")))
	again := sent(t, p.handle(p.foreign("b")))
	require.Equal(t, "a/snapshot/2", again.ID)
	require.Equal(t, "b", again.Snapshot.MemoirContext)
}

func TestSessionOfAForgottenUserIsGivenUpFirst(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.PendingLimit, c.Patience = 2, 0 })
	sent(t, p.handle(p.ended("a")))
	require.Empty(t, p.handle(p.tombstone()))
	b := sent(t, p.handle(p.ended("b")))
	require.Empty(t, p.handle(p.failure(b)))
	require.Equal(t, "c/snapshot/1", sent(t, p.handle(p.ended("c"))).ID, "nothing of a is dead-lettered")
	require.Len(t, p.state().Pending, 2)
}

// A row without sessions and memory stays while a memory of a given-up session may come.
func TestAnswerOfTheOnlySessionThatWasGivenUpIsNotAnEdit(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.RememberFor = time.Minute })
	e := p.ended("a")
	e.Value = append(e.Value, make([]byte, p.config.RecordLimit)...)
	for i := range e.Value {
		if e.Value[i] == 0 {
			e.Value[i] = ' '
		}
	}
	require.Len(t, p.handle(e), 2)
	begin := p.now
	p.now = p.now.Add(2 * time.Minute)
	require.Empty(t, p.handle(deadlineCame{user}))
	require.Equal(t, []effect{deadLetter{reasonAbandoned}}, p.handle(p.foreign("a")))
	require.Empty(t, p.state().Memory)
	require.Zero(t, p.state().AbandonedUntilMs)
	require.Empty(t, p.wait())
	require.Nil(t, p.row)
	require.Equal(t, 3*time.Minute, p.now.Sub(begin))
}
