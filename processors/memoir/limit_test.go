package memoir

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
)

func TestOldestSessionThatHasHadAPassIsGivenUpAtTheLimit(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.PendingLimit, c.Patience = 2, 0 })
	a := sent(t, p.handle(p.ended("a")))
	sent(t, p.handle(p.ended("b")))
	effects := p.handle(p.ended("c"))
	require.Len(t, effects, 2)
	dead := deadOf(t, effects[0])
	require.Equal(t, "a", dead.End)
	require.Equal(t, reasonTooMany, dead.Reason)
	require.Equal(t, p.ended("a").Value, dead.Value)
	require.Equal(t, "c/snapshot/1", sentOf(t, effects[1]).ID)
	require.Len(t, p.Read().Pending, 2)
	require.Empty(t, p.handle(p.answer(a, "a")))
	require.Equal(t, "a", p.Read().Memory, "a late memory is not lost")
}

// A session that waits for a further pass is given up before one that is with a worker.
func TestSessionsWithAWorkerAreGivenUpLast(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.PendingLimit, c.Patience = 2, 0 })
	sent(t, p.handle(p.ended("a")))
	b := sent(t, p.handle(p.ended("b")))
	require.Empty(t, p.handle(p.failure(b)))
	require.Equal(t, "b", deadOf(t, p.handle(p.ended("c"))[0]).End)
}

func TestSessionsThatEndTogetherAreSentBeforeTheirPatienceAtTheLimit(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.PendingLimit = 2 })
	sent(t, p.handle(p.ended("a")))
	require.Empty(t, p.handle(p.ended("b")))
	effects := p.handle(p.ended("c"))
	require.Len(t, effects, 2)
	require.Equal(t, "a", deadOf(t, effects[0]).End)
	require.Equal(t, "b/snapshot/1", sentOf(t, effects[1]).ID)
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
			raw, err := p.topics.MemoirSessions.Codec().Marshal(e.Snapshot)
			require.NoError(t, err)
			e.Value = raw
			effects := p.handle(e)
			require.Len(t, effects, 2)
			s := sentOf(t, effects[0])
			require.Equal(t, "a/snapshot/1", s.ID)
			require.Equal(t, c.reason, deadOf(t, effects[1]).Reason)
			require.Empty(t, p.Read().Pending)
			require.Empty(t, p.handle(e), "a repeat")
			require.Empty(t, p.handle(p.answer(s, "a")))
			require.Equal(t, "a", p.Read().Memory, "its memory is not lost")
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
		raw, err := o.topics.MemoirSessions.Codec().Marshal(e.Snapshot)
		require.NoError(t, err)
		e.Value = raw
		o.apply(e)
	}
	require.LessOrEqual(t, len(o.Row), o.config.RecordLimit/4+(1<<10))
	o.advance(o.config.Patience)
	o.check(20)
}

// FlightDeck's updater answers the snapshots of sessions that were given up meanwhile too.
func TestAnswersOfGivenUpSessionsAreNotTakenForThoseOfOthers(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.PendingLimit, c.Patience = 2, 0 })
	for _, end := range []string{"a", "b", "c", "d"} {
		p.handle(p.ended(end))
	}
	require.EqualValues(t, 2, p.Read().Abandoned)
	require.Equal(t, reasonAbandoned, machinetest.Reason(t, p.handle(p.foreign("a"))))
	require.Empty(t, p.handle(p.foreign(" ")), "nothing to keep of b")
	require.Zero(t, p.Read().Abandoned)
	require.Empty(t, p.handle(p.foreign("c")))
	require.Equal(t, "c", p.Read().Memory)
	require.Equal(t, "d/snapshot/2", sent(t, p.handle(p.foreign("d"))).ID)
	require.Empty(t, p.handle(p.foreign("c d")))
	require.Empty(t, p.Read().Pending)
	require.Equal(t, "c d", p.Read().Memory)
}

// The updater leaves out a and answers b, which is given up then: the answer was taken for that of a.
func TestSessionsAreRepeatedIfTheAnswerOfAGivenUpOneIsMissing(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.Patience = 0 })
	sent(t, p.handle(p.ended("a")))
	sent(t, p.handle(p.ended("b")))
	require.Empty(t, p.handle(p.foreign("b")))
	p.abandonOpen("b")
	require.Len(t, p.Read().Pending, 1, "it is not known whether a was answered")
	a := sent(t, p.wait())
	require.Equal(t, "a/snapshot/2", a.ID)
	require.Zero(t, p.Read().Abandoned)
	require.Empty(t, p.handle(p.foreign("b a")))
	require.Empty(t, p.Read().Pending)
}

// abandonOpen gives up a session that is with a worker.
func (p *harness) abandonOpen(end string) {
	p.TB.Helper()
	t := &transition{row: p.Read(), key: user, parts: p.Part, now: p.Now, topics: p.topics, config: p.config}
	t.abandon(t.find(end), reasonTooMany)
	t.settle()
	t.row.DeadlineMs = t.deadline()
	for _, e := range t.List() {
		delete(p.Parts, e.Part)
	}
	p.Set(t.row)
}

func TestAnswersOfGivenUpSessionsOfAForgottenUserAreIgnored(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.PendingLimit, c.Patience = 1, 0 })
	sent(t, p.handle(p.ended("a")))
	p.handle(p.ended("b"))
	require.Empty(t, p.handle(p.tombstone()))
	require.Len(t, p.handle(p.ended("c")), 1, "the end of b needs no letter: the user is forgotten")
	require.Empty(t, p.handle(p.foreign("secret a")))
	require.Empty(t, p.handle(p.foreign("secret b")))
	require.Empty(t, p.Read().Memory)
	require.Empty(t, p.handle(p.foreign("c")))
	require.Equal(t, "c", p.Read().Memory)
}

// The letter of a given-up session has its content, so an answer of an old version needs none.
func TestLateMemoryOfAGivenUpSessionWithAnOldVersionIsIgnored(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.PendingLimit, c.Patience = 1, 0 })
	a := sent(t, p.handle(p.ended("a")))
	p.handle(p.ended("b"))
	p.handle(p.edit("edited"))
	require.Empty(t, p.handle(p.answer(a, "a")))
	require.Equal(t, "edited", p.Read().Memory)
}

// The memory of a was taken for that of the given-up session, and the other way round.
func TestSessionIsRepeatedAfterOneThatWasSentOnceBehindIt(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.Patience = 0 })
	p.inline = true
	sent(t, p.handle(p.ended("a")))
	big := p.ended("b")
	big.Snapshot.Messages = conversation(strings.Repeat("x", 300<<10))
	raw, err := p.topics.MemoirSessions.Codec().Marshal(big.Snapshot)
	require.NoError(t, err)
	big.Value = raw
	require.Len(t, p.handle(big), 2)
	require.Equal(t, reasonAbandoned, machinetest.Reason(t, p.handle(p.foreign("a"))))
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
	require.Len(t, p.Read().Pending, 2)
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
	begin := p.Now
	p.Now = p.Now.Add(2 * time.Minute)
	require.Empty(t, p.handle(deadlineCame{}))
	require.Equal(t, reasonAbandoned, machinetest.Reason(t, p.handle(p.foreign("a"))))
	require.Empty(t, p.Read().Memory)
	require.Zero(t, p.Read().AbandonedUntilMs)
	require.Empty(t, p.wait())
	require.Nil(t, p.Row)
	require.Equal(t, 3*time.Minute, p.Now.Sub(begin))
}
