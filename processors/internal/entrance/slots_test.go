package entrance

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// waitFor calls Acquire for a caller in a goroutine and returns when it waits. The caller is appended to order when it has a
// slot.
func waitFor(t *testing.T, s *Slots, ctx context.Context, caller string, order *[]string) {
	go func() {
		if err := s.Acquire(ctx, caller); err != nil {
			*order = append(*order, caller+": "+err.Error())
			return
		}
		*order = append(*order, caller)
	}()
	synctest.Wait()
}

func TestCallersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSlots(1)
		require.NoError(t, s.Acquire(t.Context(), "holder"))
		var order []string
		for range 100 {
			waitFor(t, s, t.Context(), "hostile", &order)
		}
		waitFor(t, s, t.Context(), "a", &order)
		waitFor(t, s, t.Context(), "b", &order)
		waitFor(t, s, t.Context(), "b", &order)
		for range 103 {
			s.Release()
			synctest.Wait()
		}
		require.Equal(t, []string{"hostile", "a", "b", "hostile", "b", "hostile"}, order[:6])
		require.Len(t, order, 103)
		s.Release()
		require.Equal(t, 1, s.free)
		require.Empty(t, s.callers)
		require.Zero(t, s.turns.Len())
	})
}

func TestCancelledRequestGetsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSlots(1)
		require.NoError(t, s.Acquire(t.Context(), "holder"))
		var order []string
		ctx, cancel := context.WithCancel(t.Context())
		waitFor(t, s, ctx, "a", &order)
		waitFor(t, s, t.Context(), "b", &order)
		cancel()
		synctest.Wait()
		s.Release()
		synctest.Wait()
		require.Equal(t, []string{"a: context canceled", "b"}, order)
		require.ErrorIs(t, s.Acquire(ctx, "a"), context.Canceled)
		s.Release()
		require.Equal(t, 1, s.free)
	})
}

// A request that is cancelled in the moment in which it gets a slot returns the slot.
func TestNoSlotIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSlots(3)
		for i := range 200 {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				if s.Acquire(ctx, fmt.Sprint("caller-", i%7)) == nil {
					s.Release()
				}
			}()
			go cancel()
		}
		synctest.Wait()
		require.Equal(t, 3, s.free)
		require.Empty(t, s.callers)
	})
}
