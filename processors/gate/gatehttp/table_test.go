package gatehttp

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/rows/gaterow"
)

func openGate(id string, opened int64) *gaterow.Gate {
	return &gaterow.Gate{Id: id, Kind: "tool", Tool: "pay", OpenedMs: opened, ExpiresMs: opened + 1000}
}

func endedGate(id string, opened int64) *gaterow.Gate {
	g := openGate(id, opened)
	g.Outcome = &gaterow.Outcome{Status: "approved", Cause: "human", AtMs: opened + 5}
	return g
}

func state(gates ...*gaterow.Gate) *gaterow.State {
	s := &gaterow.State{Version: 1}
	for _, g := range gates {
		if g.Outcome == nil {
			s.Open = append(s.Open, g)
		} else {
			s.Closed = append(s.Closed, g)
		}
	}
	return s
}

// written is an update with the next offset of its partition.
func (t *table) written(session string, s *gaterow.State) []change {
	return t.apply(update{session: session, place: place{0, t.next[0]}, state: s, size: 100})
}

func kinds(changes []change) (all []string) {
	for _, c := range changes {
		text := "closed " + c.id
		if c.opened {
			text = "opened " + c.id
		}
		if c.view == nil {
			text += ", gone"
		}
		all = append(all, text)
	}
	return all
}

func ids(list []*known) (all []string) {
	for _, k := range list {
		all = append(all, k.id)
	}
	return all
}

func TestTableSaysWhichGatesWereOpenedAndHaveEnded(t *testing.T) {
	x := newTable(100, 1<<20)
	require.Equal(t, []string{"opened a", "opened b"}, kinds(x.written("s", state(openGate("a", 2), openGate("b", 1)))))
	require.Empty(t, x.written("s", state(openGate("a", 2), openGate("b", 1))))
	require.Equal(t, []string{"b", "a"}, ids(x.pending), "in the order of their requests")
	require.Equal(t, []string{"closed b", "opened c"}, kinds(x.written("s", state(openGate("a", 2), openGate("c", 3), endedGate("b", 1)))))
	require.Equal(t, []string{"closed d"}, kinds(x.written("s", state(openGate("a", 2), openGate("c", 3), endedGate("b", 1), endedGate("d", 4)))),
		"one that ends at once")
	require.Empty(t, kinds(x.written("s", state(openGate("a", 2), openGate("c", 3), endedGate("d", 4)))), "an outcome is forgotten")
	require.Nil(t, x.byID["b"])
	require.Equal(t, []string{"closed a, gone", "closed c, gone"}, kinds(x.written("s", nil)), "the row was deleted")
	require.Empty(t, x.byID)
	require.Empty(t, x.sessions)
	require.Zero(t, x.size)
}

func TestTableOfATopicThatIsMadeAnewHasOnlyItsRows(t *testing.T) {
	x := newTable(100, 1<<20)
	x.written("s", state(openGate("a", 1)))
	x.written("u", state(openGate("b", 2)))
	x.apply(update{session: "other", place: place{1, 7}, state: state(openGate("c", 3)), size: 100})
	changes := kinds(x.apply(update{session: "n", place: place{0, 0}, state: state(openGate("d", 4)), size: 100}))
	slices.Sort(changes)
	require.Equal(t, []string{"closed a, gone", "closed b, gone", "opened d"}, changes)
	require.Equal(t, []string{"c", "d"}, ids(x.pending))
}

func TestTableForgetsTheOldestGatesThatHaveEndedFirst(t *testing.T) {
	x := newTable(6, 1<<20)
	x.written("s", state(endedGate("a", 1)))
	x.written("s", state(endedGate("a", 1), endedGate("b", 2)))
	x.written("u", state(openGate("c", 3), openGate("d", 4)))
	require.Len(t, x.byID, 4)
	x.written("u", state(openGate("c", 3), openGate("d", 4), openGate("e", 5)))
	require.Nil(t, x.byID["a"])
	require.NotNil(t, x.byID["b"])
	require.False(t, x.incomplete())
	x.written("u", state(openGate("c", 3), openGate("d", 4), openGate("e", 5), openGate("f", 6), openGate("g", 7)))
	require.NotContains(t, x.sessions, "s")
	require.False(t, x.incomplete())
	x.written("u", state(openGate("c", 3), openGate("d", 4), openGate("e", 5), openGate("f", 6), openGate("g", 7), openGate("h", 8), openGate("i", 9)))
	require.Nil(t, x.byID["i"], "no open gate makes room")
	require.True(t, x.incomplete())
}

func TestTableDoesNotTakeAGateOfAnotherSession(t *testing.T) {
	x := newTable(100, 1<<20)
	x.written("s", state(openGate("a", 1)))
	require.Empty(t, x.written("u", state(openGate("a", 1))))
	require.Empty(t, x.written("u", state(endedGate("a", 1))))
	require.Equal(t, "s", x.byID["a"].session)
	require.True(t, x.byID["a"].open)
	x.written("u", nil)
	require.True(t, x.byID["a"].open)
}

func TestRowThatCannotBeDecodedKeepsItsPlace(t *testing.T) {
	x := newTable(100, 1<<20)
	x.written("s", state(openGate("a", 1)))
	x.apply(update{session: "s", place: place{0, 5}, broken: true})
	require.True(t, x.incomplete())
	require.True(t, x.sessions["s"].broken)
	require.False(t, x.cached.Contains("s"), "an older row is not shown")
	require.Equal(t, []string{"closed a"}, kinds(x.apply(update{session: "s", place: place{0, 6}, state: state(endedGate("a", 1))})))
	require.False(t, x.sessions["s"].broken)
	require.False(t, x.incomplete(), "the row was written again")
	x.apply(update{session: "u", place: place{0, 7}, broken: true})
	require.True(t, x.incomplete())
	x.written("u", nil)
	require.False(t, x.incomplete(), "the row was deleted")
}

// Whatever the history of rows: the table has exactly the gates of the newest ones, within its bounds.
func TestTableIsThatOfTheNewestRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newTable(1000, rapid.SampledFrom([]int{1, 2500, 1 << 20}).Draw(t, "row memory"))
		rows := map[string]*gaterow.State{}
		openNow := map[string]bool{} // by the changes
		for range rapid.IntRange(0, 40).Draw(t, "records") {
			session := rapid.SampledFrom([]string{"s", "u", "v"}).Draw(t, "session")
			var next *gaterow.State
			if rapid.IntRange(0, 9).Draw(t, "deleted") > 0 {
				next = state()
				for n := range 4 {
					id := fmt.Sprint(session, n)
					switch rapid.IntRange(0, 2).Draw(t, "gate") {
					case 1:
						if k := x.byID[id]; k == nil || k.open { // an outcome is final
							next.Open = append(next.Open, openGate(id, int64(n)))
						}
					case 2:
						next.Closed = append(next.Closed, endedGate(id, int64(n)))
					}
				}
			}
			rows[session] = next
			for _, c := range x.written(session, next) {
				if c.opened {
					require.False(t, openNow[c.id])
					openNow[c.id] = true
				} else {
					delete(openNow, c.id)
				}
			}
			wantOpen, wantAll, size := map[string]bool{}, 0, 0
			for _, s := range rows {
				for _, g := range s.GetOpen() {
					wantOpen[g.Id] = true
				}
				wantAll += len(s.GetOpen()) + len(s.GetClosed())
			}
			require.Equal(t, wantOpen, openNow)
			require.Len(t, x.pending, len(wantOpen))
			require.Len(t, x.byID, wantAll)
			require.Equal(t, wantAll-len(wantOpen), x.ended.Len())
			require.True(t, slices.IsSortedFunc(x.pending, func(a, b *known) int { return a.before(b.opened, b.id) }))
			for session := range x.sessions {
				if r, ok := x.cached.Peek(session); ok {
					size += r.size
				}
			}
			require.Equal(t, size, x.size)
			require.True(t, size <= x.bytes || x.cached.Len() == 1)
		}
	})
}
