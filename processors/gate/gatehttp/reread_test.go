package gatehttp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func at(session string, offset int64, ids ...string) update {
	u := update{session: session, place: place{0, offset}, state: state(), size: 100}
	for _, id := range ids {
		u.state.Open = append(u.state.Open, openGate(id, offset))
	}
	return u
}

func TestRereadingAddsTheNewestRowsThatWereLeftOut(t *testing.T) {
	x := newTable(2, 1<<20)
	x.apply(at("s", 0, "a", "b"))
	rows := []update{at("u", 1, "c"), at("v", 2, "d"), at("w", 3, "e"), at("u", 4), at("v", 5, "d", "f")}
	for _, u := range rows {
		x.apply(u)
	}
	require.True(t, x.incomplete())
	require.Nil(t, x.beginRereading(), "there is no room")
	x.apply(at("s", 6))
	x.gates = 5
	again := x.beginRereading()
	require.Equal(t, []int64{1, 7}, []int64{again.begin, again.end})
	require.True(t, x.incomplete(), "until it has been read")
	x.apply(at("w", 7)) // written meanwhile
	for _, u := range append(rows, at("s", 6)) {
		x.found(again, u)
	}
	changes, less := x.endRereading(again, true)
	require.True(t, less)
	require.Equal(t, []string{"opened d", "opened f"}, kinds(changes), "neither ended gates nor those of an old row")
	require.False(t, x.incomplete())
}

func TestRereadingThatFailsLeavesTheTableIncomplete(t *testing.T) {
	x := newTable(1, 1<<20)
	x.apply(at("s", 0, "a", "b"))
	x.apply(at("u", 1, "c"))
	x.apply(at("s", 2))
	again := x.beginRereading()
	changes, less := x.endRereading(again, false)
	require.Empty(t, changes)
	require.False(t, less)
	require.True(t, x.incomplete())
	again = x.beginRereading()
	x.apply(at("n", 0, "z")) // the topic was deleted and created again
	require.False(t, x.incomplete())
	x.found(again, at("u", 1, "c"))
	changes, _ = x.endRereading(again, true)
	require.Empty(t, changes)
	require.Nil(t, x.byID["c"])
}
