package invoke

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// newIndex returns an index with a look-back of one hour, and a function that adds a record to session s.
func newIndex(perSession, total int) (*turnIndex, func(turn, request string, offset int64, at time.Time)) {
	x := newTurnIndex(time.Hour, perSession, total)
	return x, func(turn, request string, offset int64, at time.Time) {
		x.add(sighting{session: "s", turn: turn, request: request, partition: 1, offset: offset, at: at}, noon)
	}
}

func TestIndexKnowsWhereATurnIs(t *testing.T) {
	x, add := newIndex(10, 10)
	add("t", "", 7, noon)
	add("other", "", 8, noon)
	add("t", "", 9, noon)
	add("t", "", 5, noon.Add(-time.Minute)) // the index is loaded while new records arrive
	turn := x.find("s", "t")
	require.Equal(t, []int64{5, 9}, []int64{turn.first, turn.last})
	require.Equal(t, noon.Add(-time.Minute), turn.began)
	require.Nil(t, x.find("s", "nobody"))
	require.Nil(t, x.find("s-2", "t"))
	require.Nil(t, x.find("s", ""))
}

// In every order of its records, a turn is found by its ID and by its request's, and began with its message.
func TestIndexJoinsARequestAndItsTurn(t *testing.T) {
	failure := &topics.Output{Error: &topics.OutputError{Code: "busy"}}
	for _, id := range []string{"t", "r"} { // a turn has an ID of its own, or its request's
		records := []sighting{
			{request: "r", at: noon.Add(-time.Minute)},
			{turn: id, offset: 3, at: noon},
			{turn: id, request: "r", offset: 4, at: noon},
			{request: "r", failed: failure, at: noon},
		}
		permute(records, func(order []sighting) {
			x := newTurnIndex(time.Hour, 10, 10)
			for _, s := range order {
				s.session = "s"
				x.add(s, noon)
			}
			require.Equal(t, 1, x.recent.Len(), order)
			turn := x.find("s", "r")
			require.Same(t, turn, x.find("s", id))
			require.Equal(t, []int64{3, 4}, []int64{turn.first, turn.last}, order)
			require.Equal(t, noon.Add(-time.Minute), turn.began)
			require.Same(t, failure, turn.failed, order)
		})
	}
}

func permute(list []sighting, visit func([]sighting)) {
	if len(list) < 2 {
		visit(list)
		return
	}
	for i := range list {
		rest := append(append([]sighting{}, list[:i]...), list[i+1:]...)
		permute(rest, func(tail []sighting) { visit(append([]sighting{list[i]}, tail...)) })
	}
}

func TestFirstTurnThatNamesARequestAnswersIt(t *testing.T) {
	x, add := newIndex(10, 10)
	add("first", "r", 1, noon)
	add("second", "r", 2, noon)
	require.Equal(t, "first", x.find("s", "r").turn)
	add("r", "", 3, noon)
	require.Equal(t, "r", x.find("s", "r").turn, "a turn's own ID takes precedence")
}

func TestIndexIsBounded(t *testing.T) {
	x, add := newIndex(3, 5)
	for i := range 10 {
		add(fmt.Sprint("t-", i), "", int64(i), noon)
	}
	require.Nil(t, x.find("s", "t-6"))
	require.NotNil(t, x.find("s", "t-7"))
	for i := range 10 {
		x.add(sighting{session: fmt.Sprint("s-", i), turn: "t", at: noon}, noon)
	}
	require.Equal(t, 5, x.recent.Len())
	require.Len(t, x.sessions, 5)
	require.NotNil(t, x.find("s-9", "t"))
}

func TestIndexForgetsTurnsWithoutRecordsInTheLookback(t *testing.T) {
	x, add := newIndex(10, 10)
	add("too old", "", 1, noon.Add(-time.Hour))
	require.Empty(t, x.sessions)
	add("running", "", 2, noon.Add(-50*time.Minute))
	add("ended", "", 3, noon.Add(-40*time.Minute))
	later := sighting{session: "s", turn: "running", partition: 1, offset: 9, at: noon.Add(30 * time.Minute)}
	x.add(later, noon.Add(30*time.Minute))
	require.Nil(t, x.find("s", "ended"))
	require.Equal(t, int64(2), x.find("s", "running").first, "its first record is known for as long as it runs")

	x, add = newIndex(10, 10)
	add("ahead", "", 1, noon.Add(24*time.Hour)) // the producer's clock is ahead
	require.Equal(t, noon, x.find("s", "ahead").touched)
}
