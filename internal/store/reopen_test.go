package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/store"
)

func TestReopenedStoreIsAtItsLastFlush(t *testing.T) {
	s := recovered(t, store.InMemory(store.WithDeadline(deadline)))
	set(t, s, "kept", "@7", 3)
	set(t, s, "changed", "@8", 4)
	require.True(t, s.Seal())
	require.NoError(t, s.Flush())
	set(t, s, "changed", "@2", 5)
	set(t, s, "new", "@1", 6)

	_, err := s.Reopen()
	require.ErrorIs(t, err, store.ErrReopen, "it is open")
	require.NoError(t, s.Close())
	again, err := s.Reopen()
	require.NoError(t, err)
	_, err = s.Reopen()
	require.ErrorIs(t, err, store.ErrReopen, "twice")

	require.Equal(t, map[string]string{"kept": "@7", "changed": "@8"}, rows(t, again))
	offset, err := again.GetOffset(-1)
	require.NoError(t, err)
	require.Equal(t, int64(4), offset)
	require.Equal(t, []store.DueEntry{{Key: "kept", Ms: 7}, {Key: "changed", Ms: 8}}, due(again))

	set(t, recovered(t, again), "changed", "@9", 5)
	require.Equal(t, map[string]string{"kept": "@7", "changed": "@9"}, rows(t, again))
	require.NoError(t, again.Close())
}

func TestStoreOnDiskIsNotReopened(t *testing.T) {
	s := opened(t, t.TempDir())
	require.NoError(t, s.Close())
	_, err := s.Reopen()
	require.ErrorIs(t, err, store.ErrReopen)
}
