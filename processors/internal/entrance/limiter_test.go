package entrance

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/processors/auth"
)

var noon = time.UnixMilli(1_790_000_000_120)

func TestKeyWithoutTokensWaitsUntilOneIsAdded(t *testing.T) {
	l := newLimiter(auth.Share{Open: 10, PerSecond: 2, Burst: 2}, 10)
	require.Zero(t, l.enter("a", noon))
	require.Zero(t, l.enter("a", noon))
	require.Equal(t, 500*time.Millisecond, l.enter("a", noon))
	require.Equal(t, 500*time.Millisecond, l.enter("a", noon), "a refused request takes no token")
	require.Zero(t, l.enter("b", noon))
	require.Zero(t, l.enter("a", noon.Add(500*time.Millisecond)))
}

func TestOpenRequestsOfAKeyAreBounded(t *testing.T) {
	l := newLimiter(auth.Share{Open: 1, PerSecond: 1, Burst: 2}, 10)
	require.Zero(t, l.enter("a", noon))
	require.Equal(t, openWait, l.enter("a", noon))
	l.leave("a")
	require.Zero(t, l.enter("a", noon), "the refused request took no token")
}

func TestKeysAreForgottenTheLeastRecentFirstUnlessTheyAreOpen(t *testing.T) {
	l := newLimiter(auth.Share{Open: 1, PerSecond: 1, Burst: 1}, 2)
	require.Zero(t, l.enter("open", noon))
	for _, key := range []string{"one", "two", "three"} {
		require.Zero(t, l.enter(key, noon))
		l.leave(key)
	}
	require.Len(t, l.entries, 2)
	require.Contains(t, l.entries, "open")
	require.Positive(t, l.enter("three", noon), "it is remembered")
}

func TestLimiterIsBoundedAndCountsOpenRequests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := auth.Share{
			Open: rapid.IntRange(1, 3).Draw(t, "open"), PerSecond: rapid.IntRange(1, 5).Draw(t, "rate"), Burst: rapid.IntRange(1, 5).Draw(t, "burst"),
		}
		keys := rapid.IntRange(1, 4).Draw(t, "keys")
		l, open, all, now := newLimiter(share, keys), map[string]int{}, 0, noon
		for range 60 {
			key := strconv.Itoa(rapid.IntRange(0, 7).Draw(t, "key"))
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "ms")) * time.Millisecond)
			switch {
			case rapid.Bool().Draw(t, "leave"):
				if open[key] > 0 {
					l.leave(key)
					open[key]--
					all--
				}
			case l.enter(key, now) == 0:
				open[key]++
				all++
			}
			require.LessOrEqual(t, open[key], share.Open)
			require.LessOrEqual(t, len(l.entries), max(keys, all), "bounded by the keys and the open requests")
			for k, n := range open {
				if n > 0 {
					require.Equal(t, n, l.entries[k].open)
				}
			}
		}
	})
}

func TestBudgetBoundsEachCallerAndAll(t *testing.T) {
	b := newBudget(10, 6)
	require.Equal(t, granted, b.take("a", 6))
	require.Equal(t, ownExhausted, b.take("a", 1))
	require.Equal(t, granted, b.take("b", 4))
	require.Equal(t, allExhausted, b.take("c", 1))
	b.give("a", 6)
	require.Equal(t, granted, b.take("c", 6))
	require.Len(t, b.users, 2, "a caller without bytes takes no memory")
}

func TestBodyMustArriveAtTheLowestRate(t *testing.T) {
	const idle, rate = 10 * time.Second, 1000
	for _, c := range []struct {
		received int
		elapsed  time.Duration
		want     time.Duration
	}{
		{0, 0, idle},
		{0, 4 * time.Second, 6 * time.Second},
		{2000, 4 * time.Second, 8 * time.Second},
		{1 << 20, 4 * time.Second, idle},
		{2000, 13 * time.Second, -time.Second},
	} {
		require.Equal(t, c.want, nextBytesWithin(idle, rate, c.received, c.elapsed), c)
	}
}
