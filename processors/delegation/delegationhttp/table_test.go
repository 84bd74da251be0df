package delegationhttp

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/topics"
)

func TestTableIsBounded(t *testing.T) {
	x := newTable(10, time.Hour)
	now := time.UnixMilli(1_790_000_000_000)
	for i := range 100 {
		x.add(topics.Delegation{SessionID: fmt.Sprint("s", i%3), CallbackID: fmt.Sprint("c", i), Status: topics.DelegationOpen}, 0, int64(i), now, now)
	}
	require.Equal(t, 10, x.recent.Len())
	require.Len(t, x.byID, 10)
	require.False(t, x.recent.Contains(key{"s0", "c0"}))
	require.True(t, x.recent.Contains(key{"s0", "c99"}))
	x.add(topics.Delegation{SessionID: "s", CallbackID: "old"}, 0, 100, now.Add(-time.Hour), now)
	require.False(t, x.recent.Contains(key{"s", "old"}), "it is older than the look-back")
	x.add(topics.Delegation{SessionID: "s", CallbackID: "ahead"}, 0, 100, now.Add(time.Hour), now)
	x.expire(now.Add(time.Hour))
	require.Zero(t, x.recent.Len())
	require.Empty(t, x.byID)
	require.Empty(t, x.sessions)
}

// Results are read from the brokers, so memory does not depend on their size.
func TestTableKeepsNoResults(t *testing.T) {
	x := newTable(10, time.Hour)
	now := time.Now()
	x.add(topics.Delegation{SessionID: "s", CallbackID: "a", Status: topics.DelegationFailed, Result: "r", Error: "e"}, 0, 0, now, now)
	e, _ := x.recent.Peek(key{"s", "a"})
	require.Empty(t, e.Result+e.Error)
}

// Whatever the order and the repeats, a delegation has ended once its end was added, and the maps agree.
func TestEndedDelegationsStayEnded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newTable(1000, time.Hour)
		now := time.UnixMilli(1_790_000_000_000)
		newest, ended := map[string]int64{}, map[string]bool{}
		for i := range rapid.IntRange(0, 60).Draw(t, "records") {
			id := fmt.Sprint("c", rapid.IntRange(0, 3).Draw(t, "id"))
			d := topics.Delegation{
				SessionID: fmt.Sprint("s", rapid.IntRange(0, 1).Draw(t, "session")), CallbackID: id, Status: topics.DelegationOpen,
				StartedMS: int64(rapid.IntRange(1, 3).Draw(t, "started")),
			}
			if rapid.Bool().Draw(t, "ended") {
				d.Status = topics.DelegationCompleted
			}
			x.add(d, 0, int64(i), now, now)
			name := d.SessionID + id
			newest[name] = max(newest[name], d.StartedMS)
			if d.Status != topics.DelegationOpen {
				ended[fmt.Sprint(name, d.StartedMS)] = true
			}
			e, _ := x.recent.Peek(key{d.SessionID, id})
			require.Equal(t, newest[name], e.StartedMS)
			require.Equal(t, ended[fmt.Sprint(name, newest[name])], e.ended())
			n := 0
			for _, of := range x.sessions {
				n += len(of)
				for j := range len(of) - 1 {
					require.LessOrEqual(t, of[j].StartedMS, of[j+1].StartedMS)
				}
			}
			require.Equal(t, x.recent.Len(), n)
		}
	})
}
