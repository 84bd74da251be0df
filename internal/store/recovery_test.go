package store_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/store"
)

func TestRecoveryWritesInBatchesWithTheOffsetOfTheirRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.0")
	s := opened(t, path)
	for i := range 2500 {
		set(t, s, fmt.Sprintf("%04d", i), "v", int64(i))
		require.False(t, s.Seal(), "recovery is no cut")
	}
	require.Len(t, rows(t, s), 2500, "rows that wait for their batch are read too")
	require.EqualValues(t, 2499, offset(t, s))

	require.NoError(t, s.Kill())

	s = opened(t, path)
	require.EqualValues(t, 1999, offset(t, s))
	require.Len(t, rows(t, s), 2000)
	set(t, s, "more", "v", 2000)
	recovered(t, s)
	require.NoError(t, s.Kill())

	s = opened(t, path)
	require.EqualValues(t, 2000, offset(t, s))
	require.Len(t, rows(t, s), 2001)
}

func TestRecoveryWritesLargeRowsEarlyAndRowsWithoutOffsetToo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.0")
	s := opened(t, path)
	for i := range 3 {
		require.NoError(t, s.Set(fmt.Sprint(i), make([]byte, 1<<20)))
		n, _ := s.Pending()
		require.Less(t, n, 2)
	}
}

func TestCloseKeepsWhatRecoveryRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.0")
	s := opened(t, path)
	set(t, s, "a", "1", 5)
	require.NoError(t, s.Close())
	s = opened(t, path)
	require.Equal(t, map[string]string{"a": "1"}, rows(t, s))
	require.EqualValues(t, 5, offset(t, s))
}

func TestThroughStoreHasNoLayer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.0")
	s := recovered(t, opened(t, path, store.WithThrough()))
	set(t, s, "a", "1", 5)
	require.False(t, s.Seal())

	require.NoError(t, s.Kill())

	s = recovered(t, opened(t, path, store.WithThrough()))
	require.Equal(t, map[string]string{"a": "1"}, rows(t, s))
	require.EqualValues(t, 5, offset(t, s))
	require.NoError(t, s.Set("b", []byte("2"))) // its offset never comes
	require.NoError(t, s.Close())
	require.Equal(t, map[string]string{"a": "1", "b": "2"}, rows(t, opened(t, path)))
}
