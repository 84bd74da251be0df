package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/internal/store"
)

func TestPartsOfARowAreFoundInAllLayers(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		s := recovered(t, open())
		part := func(n uint32) string { return runtimeapi.PartKey("s", n) }
		for i, key := range []string{part(1), part(2), part(3), "s", "s1", runtimeapi.PartKey("s1", 9), "s\x00x", "s\x01"} {
			set(t, s, key, "base", int64(i))
		}
		seal(t, s)
		set(t, s, part(4), "sealed", 20)
		set(t, s, part(5), "sealed", 21)
		require.NoError(t, s.Delete(part(2)))
		require.True(t, s.Seal())
		set(t, s, part(6), "open", 22)
		require.NoError(t, s.Delete(part(3)))
		require.NoError(t, s.Delete(part(5)))

		got, err := s.Parts("s")
		require.NoError(t, err)
		require.ElementsMatch(t, []uint32{1, 4, 6}, got)
		got, err = s.Parts("none")
		require.NoError(t, err)
		require.Empty(t, got)
		require.NoError(t, s.Close())
		_, err = s.Parts("s")
		require.ErrorIs(t, err, store.ErrClosed)
	})
}
