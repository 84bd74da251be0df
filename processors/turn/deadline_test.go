package turn

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/topics"
)

// A deadline that fires before its time, because the clock was set back in between, must come again: the index hands it
// out once, and has it again when the row is written.
func TestDeadlineThatFiresTooEarlyIsWrittenAgain(t *testing.T) {
	p := newPlay(t)
	p.send("message-input", message("one"))
	p.now = p.now.Add(-time.Hour)
	out := p.decide(p.bind, deadlineCame{Session: p.key})
	require.True(t, out.Changed)
	require.Empty(t, out.Effects)
	require.NotZero(t, out.State.DeadlineMs)

	p = newPlay(t)
	out = p.decide(p.bind, deadlineCame{Session: p.key})
	require.False(t, out.Changed, "nobody has a row")
}

// unread fires the deadline as the runtime does while records may be unread that were written at from or later.
func (p *play) unread(from, since time.Time) effects {
	p.tb.Helper()
	return p.apply(deadlineCame{Session: p.key, Unread: &unread{From: from, Since: since}})
}

// readThrough fires the deadline when the inputs have been read through a time.
func (p *play) readThrough(read time.Time) effects {
	p.tb.Helper()
	return p.apply(deadlineCame{Session: p.key, Read: read})
}

// A deadline of another message of the session fires after a downtime, when the records of before it are read.
func TestWhatIsDueLaterWaitsForItsRecords(t *testing.T) {
	p := heldAnswer(t)
	expires := p.dueAt()
	p.now = expires.Add(-p.rules.ThinkTimeout / 2)
	p.ask("another")
	p.now = expires.Add(time.Hour)
	require.Equal(t, []string{reasonNotOpened}, p.readThrough(expires).letters())
	require.NotNil(t, p.state().Turn, "its answer may not be read yet")
	step := expires.Add(p.rules.ThinkTimeout / 2)
	require.Equal(t, step, p.dueAt())
	require.Empty(t, p.readThrough(step.Add(-time.Millisecond)))
	require.NotNil(t, the[answered](t, p.readThrough(step)).Error)
}

func (p *play) dueAt() time.Time {
	p.tb.Helper()
	ms, ok := rows.Deadline(p.row)
	require.True(p.tb, ok)
	return time.UnixMilli(ms)
}

// waiting are the states whose end loses a conversation if a message of before is not read yet.
var waiting = map[string]struct {
	open  func(t *testing.T) *play
	ended func(*testing.T, *play, effects)
}{
	"session that ends": {
		func(t *testing.T) *play { return talked(t) },
		func(t *testing.T, _ *play, es effects) { require.Len(t, emitted[sessionEnded](es), 1) },
	},
	"session that is removed": {
		func(t *testing.T) *play {
			p := newPlay(t, func(r *rules) { r.IdlePurge = time.Hour })
			p.respond(p.ask("one"), saying("hello"))
			return p
		},
		func(t *testing.T, p *play, _ effects) { require.Nil(t, p.state().History) },
	},
}

// heldAnswer is a session whose row a crash took back to before its message: the answer of the model is held until the message
// is read again.
func heldAnswer(t tb) *play {
	p, asked, id := lostTurn(t)
	require.Empty(t, p.send("think-request-response", response(asked, saying("to the lost one")), header(topics.HeaderID, id+"/think")))
	require.Len(t, p.state().Early, 1)
	return p
}

func TestEndIsPostponedWhileEarlierRecordsMayBeUnread(t *testing.T) {
	for name, c := range waiting {
		t.Run(name, func(t *testing.T) {
			p := c.open(t)
			due := p.dueAt()
			p.now = due.Add(time.Hour) // the process was down
			since := p.now
			for range 3 {
				require.Empty(t, p.unread(time.Time{}, since))
				require.Equal(t, p.now.Add(endAgain(p.key, p.now.Sub(since))).UnixMilli(), p.dueAt().UnixMilli())
				p.now = p.dueAt()
			}
			require.Empty(t, p.unread(due.Add(-time.Millisecond), since))
			c.ended(t, p, p.unread(due, since))
		})
	}
}

func TestEndIsPostponedForALimitedTimeIfAnInputIsNeverRead(t *testing.T) {
	for name, c := range waiting {
		for _, down := range []time.Duration{0, time.Hour} {
			t.Run(name+" "+down.String(), func(t *testing.T) {
				p := c.open(t)
				due := p.dueAt()
				since := due.Add(down) // a process that runs since long before is as good as one that began when it was due
				last := since.Add(maxEndDelay)
				if down == 0 {
					since = time.Time{}
				}
				p.now = last.Add(-maxEndDelay)
				for p.now.Before(last) {
					require.Empty(t, p.unread(time.Time{}, since))
					require.True(t, p.dueAt().After(p.now))
					require.False(t, p.dueAt().After(last))
					p.now = p.dueAt()
				}
				c.ended(t, p, p.unread(time.Time{}, since))
			})
		}
	}
}

// All idle sessions of a partition are due when it is read after a downtime.
func TestEndsThatArePostponedAreTriedAgainAfterWaitsThatGrow(t *testing.T) {
	p := talked(t)
	p.now = p.dueAt().Add(time.Hour)
	since, writes := p.now, 0
	for len(emitted[sessionEnded](p.unread(time.Time{}, since))) == 0 {
		writes++
		require.GreaterOrEqual(t, p.dueAt().Sub(p.now), min(minEndAgain, since.Add(maxEndDelay).Sub(p.now)))
		p.now = p.dueAt()
	}
	require.Equal(t, maxEndDelay, p.now.Sub(since))
	require.LessOrEqual(t, writes, 20)
}

func TestEndsThatArePostponedAreSpread(t *testing.T) {
	slots := map[time.Duration]int{}
	for n := range 2000 {
		slots[endAgain(fmt.Sprint("s", n), 0).Truncate(100*time.Millisecond)]++
	}
	for slot, n := range slots {
		require.Less(t, n, 200, slot)
	}
}

func TestWaitsForUnreadRecordsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		session := rapid.String().Draw(t, "session")
		waited := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "waited"))
		more := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "more"))
		again := endAgain(session, waited)
		require.Equal(t, again, endAgain(session, waited))
		require.GreaterOrEqual(t, again, minEndAgain)
		require.GreaterOrEqual(t, again, min(waited, maxEndAgain/2))
		require.LessOrEqual(t, again, maxEndAgain)
		require.LessOrEqual(t, again, endAgain(session, waited+more))
	})
}

// What was unread is applied as if the deadline had not come.
func TestMessageOfBeforeTheEndIsReadInTheSession(t *testing.T) {
	p := talked(t)
	p.now = p.dueAt().Add(time.Hour)
	require.Empty(t, p.unread(time.Time{}, p.now))
	asked := p.ask("two")
	require.Contains(t, string(asked.History), "hello")
	require.Equal(t, p.now.Add(p.rules.ThinkTimeout), p.dueAt(), "nothing of the postponed deadline is left")
}

// Whatever is read, and however far the inputs are read, a turn ends, and a held record is given up, at the last when the inputs are
// read through its deadline.
func TestTurnsAndHeldRecordsEndHoweverFarTheInputsAreRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPlay(t, withMemoir)
		var asked []enriched
		for n := range rapid.IntRange(1, 20).Draw(t, "events") {
			p.now = p.now.Add(time.Duration(rapid.Int64Range(0, int64(15*time.Minute)).Draw(t, "wait")))
			switch rapid.IntRange(0, 3).Draw(t, "event") {
			case 3: // it names a turn whose message is on no topic
				lost := turnID(p.key, fmt.Sprint("lost", n)) + "/1/enriched/0/think"
				p.send("think-request-response", `{`+saying("hello")+`}`, header(topics.HeaderID, lost))
			case 0:
				asked = append(asked, emitted[enriched](p.send("message-input", message("m")))...)
			case 1:
				if len(asked) > 0 {
					p.respond(asked[len(asked)-1], saying("hello"))
				}
			default:
				if p.row != nil {
					p.readThrough(p.now.Add(-time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "behind"))))
				}
			}
		}
		for range 10_000 {
			if p.row == nil || p.state().Turn == nil && len(p.state().Early) == 0 {
				return
			}
			p.now = laterOf(p.now, p.dueAt())
			p.readThrough(p.now)
		}
		t.Fatal("the turn is still open, or a record is still held")
	})
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
