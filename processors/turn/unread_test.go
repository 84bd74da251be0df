package turn

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// checkUnread checks that a deadline that is not asked for its unread records does not depend on them.
func (p *play) checkUnread(d deadlineCame, out outcome) {
	p.tb.Helper()
	from, err := newStateCache().read(p.table(), d.Session)
	require.NoError(p.tb, err)
	if from.state != nil && (&session{row: from.state, key: d.Session, now: p.now, rules: p.rules}).mayPostpone() {
		return
	}
	if d.Unread != nil {
		d.Unread = nil
	} else {
		d.Unread = &unread{Since: p.now}
	}
	other := p.decide(p.newBinding(), d)
	require.Equal(p.tb, out.Effects, other.Effects)
	require.Equal(p.tb, out.Changed, other.Changed)
	require.Equal(p.tb, out.State == nil, other.State == nil)
	if out.State != nil {
		a, err := turnrow.Table.Marshal(out.State)
		require.NoError(p.tb, err)
		b, err := turnrow.Table.Marshal(other.State)
		require.NoError(p.tb, err)
		require.Equal(p.tb, a, b)
	}
}

// readTable is a table beside inputs that have been read up to through.
type readTable struct {
	table
	through, since time.Time
	asked          *int
}

func (t readTable) Progress() processors.Progress {
	*t.asked++
	return processors.Progress{Through: t.through, Since: t.since}
}

// fire fires the deadline with the inputs read up to through, and returns how often that was asked.
func (p *play) fire(through time.Time) (out outcome, asked int) {
	p.tb.Helper()
	out, err := p.newBinding().decide(readTable{p.table(), through, p.now, &asked}, deadlineCame{Session: p.key}, p.now)
	require.NoError(p.tb, err)
	return out, asked
}

func TestProgressIsAskedOnceForADeadlineThatMayWait(t *testing.T) {
	for name, c := range waiting {
		t.Run(name, func(t *testing.T) {
			p := c.open(t)
			p.now = p.dueAt().Add(-time.Millisecond)
			out, asked := p.fire(time.Time{})
			require.Zero(t, asked, "nothing is due yet")
			require.Empty(t, out.Effects)

			p.now = p.dueAt()
			out, asked = p.fire(time.Time{})
			require.Equal(t, 1, asked)
			require.Empty(t, out.Effects)
			require.Greater(t, out.State.DeadlineMs, p.now.UnixMilli())
			out, _ = p.fire(p.now)
			want := p.decide(p.newBinding(), deadlineCame{Session: p.key})
			require.Len(t, out.Effects, len(want.Effects))
			row, err := turnrow.Table.Marshal(want.State)
			require.NoError(t, err)
			require.Equal(t, row, out.row, "as without unread records")
		})
	}
}

func TestProgressIsNotAskedForADeadlineThatDoesNotWait(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *play{
		"no row": func(t *testing.T) *play { return newPlay(t) },
		"think step": func(t *testing.T) *play {
			p := newPlay(t)
			p.ask("one")
			p.now = p.dueAt()
			return p
		},
		"tool calls": func(t *testing.T) *play {
			p := newPlay(t)
			p.respond(p.ask("one"), calling("t1", "t2"))
			p.now = p.dueAt()
			return p
		},
		"route of the open turn": func(t *testing.T) *play {
			p := newPlay(t, func(r *rules) { r.RouteTTL = time.Second })
			p.send("reply-to", `{"to":1}`)
			p.ask("one")
			p.now = p.dueAt()
			return p
		},
		"route beside a turn": func(t *testing.T) *play {
			p := newPlay(t, func(r *rules) { r.RouteTTL = time.Second })
			p.ask("one")
			p.send("reply-to", `{"to":1,"request_id":"r9"}`)
			p.now = p.dueAt()
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t)
			_, asked := p.fire(time.Time{})
			require.Zero(t, asked)
		})
	}
}

// A deadline removes the route that a session has waited for. The session has been idle for long then, and its next message may
// be unread although it was written after the deadline.
func TestSessionDoesNotEndWithItsRouteBeforeItsNextMessageIsRead(t *testing.T) {
	p := talked(t, func(r *rules) { r.RouteTTL = time.Minute })
	p.send("reply-to", `{"to":1}`)
	route := p.dueAt()
	p.now = route.Add(time.Hour)
	out, asked := p.fire(route)
	require.Equal(t, 1, asked)
	require.Empty(t, out.Effects)
	p.keep(out)
	require.Empty(t, p.state().Routes)
	require.Contains(t, string(p.ask("two").History), "hello")
}

// Whatever a session waits for: play.apply compares each deadline that is not asked for with one whose records are unread.
func TestDeadlinesThatAreNotAskedForUnreadRecordsDoNotDependOnThem(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := newPlay(rt, withMemoir, withGates, func(r *rules) {
			r.RouteTTL = time.Duration(rapid.IntRange(1, 60).Draw(rt, "route")) * time.Minute
			if rapid.Bool().Draw(rt, "purges") {
				r.IdlePurge = time.Duration(rapid.IntRange(1, 60).Draw(rt, "idle")) * time.Minute
			}
		})
		var steps []enriched
		for n := range rapid.IntRange(1, 30).Draw(rt, "events") {
			switch rapid.IntRange(0, 7).Draw(rt, "event") {
			case 0:
				steps = append(steps, emitted[enriched](p.send("message-input", message(fmt.Sprint("m", n))))...)
			case 1:
				if len(steps) > 0 {
					p.respond(steps[len(steps)-1], rapid.SampledFrom([]string{saying("hello"), calling(fmt.Sprint("t", n))}).Draw(rt, "reply"))
				}
			case 2:
				p.send("reply-to", fmt.Sprintf(`{"to":%d,"request_id":"r%d"}`, n, n))
			case 3:
				named := "r1"
				if turn := p.state().GetTurn(); turn != nil {
					named = turn.Message.TurnId
				}
				p.request(foldGate(p, fmt.Sprint("g", n), named, time.Duration(rapid.IntRange(1, 60).Draw(rt, "ttl"))*time.Minute))
			case 4:
				lost := turnID(p.key, fmt.Sprint("lost", n)) + "/1/enriched/0/think"
				p.send("think-request-response", `{`+saying("early")+`}`, header(topics.HeaderID, lost))
			default:
				if p.row == nil || p.stored().DeadlineMs == 0 {
					continue
				}
				p.now = laterOf(p.now, p.dueAt()).Add(time.Duration(rapid.SampledFrom([]int{0, 0, 1, 40, 1500}).Draw(rt, "late")) * time.Minute)
				if rapid.Bool().Draw(rt, "unread") {
					p.unread(p.now.Add(-time.Duration(rapid.IntRange(0, 120).Draw(rt, "from"))*time.Minute), p.now)
				} else {
					p.wait(0)
				}
			}
			p.now = p.now.Add(time.Duration(rapid.IntRange(0, 20).Draw(rt, "wait")) * time.Minute)
		}
	})
}
