package turn

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
)

func TestViewSaysWhatTheTurnWaitsFor(t *testing.T) {
	name, request := "pay", "r-1"
	gated := &turnrow.Call{Name: &name, Gate: &turnrow.Gate{GateId: "g-1", ExpiresMs: 2000}}
	ended := &turnrow.Call{Name: &name, Result: &turnrow.Result{}}
	open := func(calls ...*turnrow.Call) *turnrow.OpenTurn {
		return &turnrow.OpenTurn{
			Message: &turnrow.Accepted{TurnId: "t-1", RequestId: &request, Input: []byte("secret")}, Step: 2, DeadlineMs: 1000, Calls: calls,
		}
	}
	stopped := open()
	stopped.StoppedMs = 700
	compacting := open()
	compacting.Compaction = &turnrow.Compacting{}
	for _, tc := range []struct {
		turn           *turnrow.OpenTurn
		want, deadline string
	}{
		{open(), WaitModel, "1970-01-01T00:00:01Z"},
		{compacting, WaitCompactor, "1970-01-01T00:00:01Z"},
		{open(ended, gated), WaitGates, ""},
		{stopped, WaitGates, ""},
		{open(&turnrow.Call{Name: &name}, gated), WaitTools, "1970-01-01T00:00:01Z"},
		{open(ended), WaitTools, "1970-01-01T00:00:01Z"},
	} {
		v, err := Inspect("s-1", &turnrow.State{
			Version: 2, Turn: tc.turn, History: []byte(`["secret"]`), HistoryLength: 1, TouchedMs: 500,
			Waiting: []*turnrow.Accepted{{TurnId: "t-2", Input: []byte("secret")}},
		})
		require.NoError(t, err)
		require.Equal(t, tc.want, v.Turn.WaitsFor)
		require.Equal(t, tc.deadline, v.Turn.DeadlineAt)
		require.Equal(t, []WaitingView{{"t-2", "", 6}}, v.Waiting)
		require.Len(t, v.Turn.Calls, len(tc.turn.Calls))
		for i, c := range v.Turn.Calls {
			require.Equal(t, tc.turn.Calls[i].Result == nil, c.Open)
			require.Equal(t, tc.turn.Calls[i].Gate.GetGateId(), c.GateID)
		}
		raw, err := json.Marshal(v)
		require.NoError(t, err)
		require.NotContains(t, string(raw), "secret")
	}
	v, err := Inspect("s-1", nil)
	require.NoError(t, err)
	require.Equal(t, View{SessionID: "s-1", Waiting: []WaitingView{}}, v)
	_, err = Inspect("s-1", 7)
	require.Error(t, err)
}

func TestHistoryIsReadFromItsParts(t *testing.T) {
	row := &turnrow.State{
		HistoryParts: []*turnrow.Part{{Number: 3, Length: 3}, {Number: 7, Length: 4}}, History: []byte("3]"),
	}
	parts := map[uint32][]byte{3: []byte("[1,"), 7: []byte("[2],unused")}
	history, err := History(row, func(n uint32) ([]byte, error) { return parts[n], nil })
	require.NoError(t, err)
	require.Equal(t, "[1,[2],3]", string(history))
	_, err = History(row, func(uint32) ([]byte, error) { return nil, nil })
	require.ErrorContains(t, err, "part 3")
	history, err = History(nil, nil)
	require.NoError(t, err)
	require.Nil(t, history)
}
