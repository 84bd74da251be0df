package store_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/store"
	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
)

func TestDeadlinesComeInOrderAndNotEarly(t *testing.T) {
	x := store.NewDueIndex()
	x.Set("b", 20)
	x.Set("c", 10)
	x.Set("a", 20)
	x.Set("late", 21)
	require.Empty(t, x.PopDue(9, 10))
	require.Equal(t, []store.DueEntry{{Key: "c", Ms: 10}, {Key: "a", Ms: 20}, {Key: "b", Ms: 20}}, x.PopDue(20, 10))
	require.Equal(t, 1, x.Len())
}

func TestSweepHandsOutNoMoreThanItsLimit(t *testing.T) {
	x := store.NewDueIndex()
	for i := range 5 {
		x.Set(fmt.Sprint(i), int64(i))
	}
	require.Empty(t, x.PopDue(100, 0))
	require.Empty(t, x.PopDue(100, -1))
	require.Len(t, x.PopDue(100, 2), 2)
	require.Equal(t, []store.DueEntry{{Key: "2", Ms: 2}, {Key: "3", Ms: 3}, {Key: "4", Ms: 4}}, x.PopDue(100, 9))
}

func TestPoppedDeadlineReturnsOnlyAfterSet(t *testing.T) {
	x := store.NewDueIndex()
	x.Set("k", 5)
	require.Len(t, x.PopDue(5, 1), 1)
	require.Empty(t, x.PopDue(1000, 1))
	_, ok := x.Next()
	require.False(t, ok)

	x.Set("k", 5)
	require.Equal(t, []store.DueEntry{{Key: "k", Ms: 5}}, x.PopDue(5, 1))
	x.Remove("k")
	require.Empty(t, x.PopDue(1000, 1))
}

func TestMovedOrRemovedDeadlineNeverFires(t *testing.T) {
	x := store.NewDueIndex()
	x.Set("moved", 5)
	x.Set("moved", 50)
	x.Set("removed", 5)
	x.Remove("removed")
	x.Remove("unknown")
	require.Empty(t, x.PopDue(49, 9))
	ms, ok := x.Next()
	require.True(t, ok)
	require.EqualValues(t, 50, ms)
}

func TestDeadlineOfZeroOrLessIsDueAtOnce(t *testing.T) {
	x := store.NewDueIndex()
	x.Set("negative", -1)
	x.Set("", 0)
	require.Equal(t, []store.DueEntry{{Key: "negative", Ms: -1}, {Key: "", Ms: 0}}, x.PopDue(0, 9))
}

// TestIndexEqualsNaiveModel compares the index with a map that is sorted for every sweep.
func TestIndexEqualsNaiveModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, model := store.NewDueIndex(), map[string]int64{}
		key := rapid.SampledFrom(strings.Split("abcdefghijklmnopqrstuvwxyz", ""))
		ms := rapid.Int64Range(-5, 40)
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				k, at := key.Draw(t, "key"), ms.Draw(t, "ms")
				x.Set(k, at)
				model[k] = at
			},
			"remove": func(t *rapid.T) {
				k := key.Draw(t, "key")
				x.Remove(k)
				delete(model, k)
			},
			"pop": func(t *rapid.T) {
				now, limit := ms.Draw(t, "now"), rapid.IntRange(0, 30).Draw(t, "limit")
				require.Equal(t, popNaive(model, now, limit), x.PopDue(now, limit))
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(model), x.Len())
				next, ok := x.Next()
				require.Equal(t, len(model) > 0, ok)
				for _, at := range model {
					require.LessOrEqual(t, next, at)
				}
			},
		})
		require.Equal(t, popNaive(model, 100, 100), x.PopDue(100, 100))
	})
}

func popNaive(model map[string]int64, now int64, limit int) []store.DueEntry {
	var due []store.DueEntry
	for k, at := range model {
		if at <= now {
			due = append(due, store.DueEntry{Key: k, Ms: at})
		}
	}
	slices.SortFunc(due, func(a, b store.DueEntry) int {
		if a.Ms != b.Ms {
			return int(a.Ms - b.Ms)
		}
		return strings.Compare(a.Key, b.Key)
	})
	if due = due[:min(limit, len(due))]; len(due) == 0 {
		return nil
	}
	for _, e := range due {
		delete(model, e.Key)
	}
	return due
}

func TestIndexWorksAfterItWasLargeAndEmptied(t *testing.T) {
	x := store.NewDueIndex()
	for round := range 3 {
		for i := range 5000 {
			x.Set(fmt.Sprint(i), int64(5000-i))
		}
		x.Remove("17")
		require.Len(t, x.PopDue(5000, 10000), 4999, "round %d", round)
		require.Zero(t, x.Len())
	}
}

func TestEveryDeadlineIsHandedOutOnceToConcurrentSweeps(t *testing.T) {
	const keys, sweeps = 2000, 4
	x := store.NewDueIndex()
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]int{}
	sweep := func() {
		due := x.PopDue(1, 7)
		mu.Lock()
		defer mu.Unlock()
		for _, e := range due {
			seen[e.Key]++
		}
	}
	wg.Go(func() {
		for i := range keys {
			x.Set(fmt.Sprint(i), 1)
		}
	})
	for range sweeps {
		wg.Go(func() {
			for range keys {
				sweep()
			}
		})
	}
	wg.Wait()
	for x.Len() > 0 {
		sweep()
	}
	require.Len(t, seen, keys)
	for k, n := range seen {
		require.Equal(t, 1, n, k)
	}
}

func ExampleDueIndex() {
	x := store.NewDueIndex()
	x.Set("session-a", 1000)
	x.Set("session-b", 3000)
	fmt.Println(x.PopDue(2000, 100))
	fmt.Println(x.PopDue(2000, 100))
	x.Set("session-a", 1000)
	fmt.Println(x.PopDue(2000, 100))
	// Output:
	// [{session-a 1000}]
	// []
	// [{session-a 1000}]
}
