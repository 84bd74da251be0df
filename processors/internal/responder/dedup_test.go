package responder_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/internal/dedup"
)

type memory = dedup.Memory[string, int]

func newMemory(limit int) (*memory, *clock.Fake) {
	c := clock.NewFake(time.UnixMilli(1_790_000_000_000))
	return dedup.New[string, int](time.Minute, limit, c), c
}

func do(t *testing.T, m *memory, key string, value int, keep bool) (int, bool) {
	t.Helper()
	got, repeated, err := m.Do(t.Context(), key, func() (int, bool) { return value, keep })
	require.NoError(t, err)
	return got, repeated
}

func TestKeptValueIsComputedOnce(t *testing.T) {
	m, _ := newMemory(10)
	for i, want := range []int{0, 0, 0} {
		got, repeated := do(t, m, "a", i, true)
		require.Equal(t, want, got)
		require.Equal(t, i > 0, repeated)
	}
	got, repeated := do(t, m, "b", 7, true)
	require.Equal(t, []any{7, false}, []any{got, repeated})
	require.Equal(t, 2, m.Len())
}

func TestValueThatIsNotKeptIsComputedAgain(t *testing.T) {
	m, _ := newMemory(10)
	for i := range 3 {
		got, repeated := do(t, m, "a", i, false)
		require.Equal(t, []any{i, false}, []any{got, repeated})
	}
	require.Zero(t, m.Len())
	require.Panics(t, func() { _, _, _ = m.Do(t.Context(), "a", func() (int, bool) { panic("x") }) })
	got, _ := do(t, m, "a", 9, true)
	require.Equal(t, 9, got)
}

func TestMemoryIsBoundedByAgeAndCount(t *testing.T) {
	m, c := newMemory(2)
	for i, key := range []string{"a", "b", "c"} {
		do(t, m, key, i, true)
	}
	require.Equal(t, 2, m.Len())
	_, repeated := do(t, m, "b", 9, true)
	require.True(t, repeated)
	_, repeated = do(t, m, "a", 9, true)
	require.False(t, repeated)
	c.Advance(time.Minute)
	require.Zero(t, m.Len())
}

func TestOldestValuesAreEvictedBeyondTheByteLimit(t *testing.T) {
	c := clock.NewFake(time.UnixMilli(1_790_000_000_000))
	m := dedup.NewSized(time.Minute, 100, 10, func(_ string, v int) int64 { return int64(v) }, c)
	do(t, m, "a", 4, true)
	do(t, m, "b", 6, true)
	require.Equal(t, 2, m.Len())
	do(t, m, "c", 1, true)
	require.Equal(t, 2, m.Len())
	_, repeated := do(t, m, "b", 6, true)
	require.True(t, repeated, "a was the oldest")

	do(t, m, "large", 11, true)
	require.Equal(t, 2, m.Len(), "what is larger than the bound evicts nothing")
	_, repeated = do(t, m, "large", 11, true)
	require.False(t, repeated)

	c.Advance(time.Minute)
	require.Zero(t, m.Len())
	do(t, m, "d", 10, true)
	_, repeated = do(t, m, "d", 10, true)
	require.True(t, repeated, "what expired takes no bytes")
}

func TestValueThatIsTooLargeIsReturnedToWaitingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := dedup.NewSized(time.Minute, 100, 10, func(string, int) int64 { return 11 }, clock.NewFake(time.UnixMilli(1)))
		release, got := make(chan struct{}), make(chan int, 2)
		var tries atomic.Int32
		for range 2 {
			go func() {
				v, _, _ := m.Do(t.Context(), "a", func() (int, bool) { <-release; return int(tries.Add(1)), true })
				got <- v
			}()
		}
		synctest.Wait() // one call runs, the other waits
		close(release)
		require.Equal(t, []int{1, 1}, []int{<-got, <-got})
	})
}

func TestConcurrentCallWaitsForTheRunningOne(t *testing.T) {
	for _, keep := range []bool{true, false} {
		m, _ := newMemory(10)
		begun, release := make(chan struct{}), make(chan struct{})
		var tries atomic.Int32
		results := make(chan string, 2)
		ask := func(try func() (int, bool)) {
			got, repeated, err := m.Do(context.Background(), "a", try)
			results <- fmt.Sprint(got, repeated, err)
		}
		go ask(func() (int, bool) { close(begun); <-release; return 1, keep })
		<-begun
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, _, err := m.Do(ended, "a", func() (int, bool) { tries.Add(1); return 3, true })
		require.ErrorIs(t, err, context.Canceled)
		go ask(func() (int, bool) { tries.Add(1); return 2, true })
		close(release)
		got := map[string]bool{<-results: true, <-results: true}
		if keep {
			require.Equal(t, map[string]bool{"1 false <nil>": true, "1 true <nil>": true}, got)
			require.Zero(t, tries.Load())
			continue
		}
		require.Equal(t, map[string]bool{"1 false <nil>": true, "2 false <nil>": true}, got)
	}
}

func Example_dedup() {
	m := dedup.New[string, string](time.Hour, 1000, clock.System())
	for range 2 {
		answer, repeated, err := m.Do(context.Background(), "key", func() (string, bool) {
			fmt.Println("written")
			return "accepted", true
		})
		fmt.Println(answer, repeated, err)
	}
	// Output:
	// written
	// accepted false <nil>
	// accepted true <nil>
}
