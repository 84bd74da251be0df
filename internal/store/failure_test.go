package store_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/store"
)

var errDisk = errors.New("disk full")

func TestFailedFlushCanBeRetried(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		s := recovered(t, open())
		s.FailWrites(1, errDisk)
		set(t, s, "a", "1", 1)
		require.True(t, s.Seal())
		require.ErrorIs(t, s.Flush(), errDisk)
		require.Equal(t, map[string]string{"a": "1"}, rows(t, s))
		require.EqualValues(t, 1, offset(t, s))

		require.NoError(t, s.Flush())
		require.Equal(t, map[string]string{"a": "1"}, rows(t, s))
		require.EqualValues(t, 1, offset(t, s))
	})
}

func TestFailedWriteOfCommittedRowsIsReportedAndTriedAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		s := open()
		set(t, s, "recovered", "1", 1)
		s.FailWrites(2, errDisk)
		require.ErrorIs(t, s.MarkRecovered(), errDisk)
		set(t, s, "more", "2", 2)
		require.ErrorIs(t, s.MarkRecovered(), errDisk)
		want := map[string]string{"recovered": "1", "more": "2"}
		require.Equal(t, want, rows(t, s))
		recovered(t, s)
		require.Equal(t, want, rows(t, s))
		require.EqualValues(t, 2, offset(t, s))
	})
}
