package store_test

import (
	"bytes"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/store"
)

// deadline reads "@ms" at the start of a row.
func deadline(row []byte) (int64, bool) {
	if !bytes.HasPrefix(row, []byte("@")) {
		return 0, false
	}
	ms, err := strconv.ParseInt(string(row[1:]), 10, 64)
	return ms, err == nil
}

func due(s *store.Store) []store.DueEntry { return s.Due().PopDue(1<<60, 1000) }

func TestDueIndexFollowsEveryWrite(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		s := open(store.WithDeadline(deadline))
		set(t, s, "recovered", "@1", 1)
		recovered(t, s)
		set(t, s, "set", "@2", 2)
		set(t, s, "moved", "@3", 3)
		set(t, s, "moved", "@4", 4)
		set(t, s, "closed", "@5", 5)
		set(t, s, "closed", "over", 6)
		set(t, s, "deleted", "@7", 7)
		require.NoError(t, s.Delete("deleted"))
		set(t, s, "never", "row", 8)
		require.Equal(t, []store.DueEntry{{Key: "recovered", Ms: 1}, {Key: "set", Ms: 2}, {Key: "moved", Ms: 4}}, due(s))
		require.Empty(t, due(s))

		set(t, s, "moved", "@4", 9)
		require.Equal(t, []store.DueEntry{{Key: "moved", Ms: 4}}, due(s), "a row that is written again is armed again")
	})
}

func TestReopenedStoreKnowsItsDeadlinesWithoutReadingRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.0")
	s := recovered(t, opened(t, path, store.WithDeadline(deadline)))
	set(t, s, "a", "@1", 1)
	set(t, s, "b", "@-2", 2)
	set(t, s, "closed", "@3", 3)
	set(t, s, "gone", "@3", 4)
	set(t, s, "row", "row", 5)
	seal(t, s)
	set(t, s, "closed", "over", 6)
	require.NoError(t, s.Delete("gone"))
	seal(t, s)
	require.Len(t, due(s), 2, "handed out, not written: they come again after a restart")
	set(t, s, "open", "@9", 7)
	require.NoError(t, s.Close())

	s = opened(t, path, store.WithDeadline(func([]byte) (int64, bool) {
		t.Error("a row was read")
		return 0, false
	}))
	require.Equal(t, []store.DueEntry{{Key: "b", Ms: -2}, {Key: "a", Ms: 1}}, due(s))
	require.Equal(t, map[string]string{"a": "@1", "b": "@-2", "closed": "over", "row": "row"}, rows(t, s))
}

func TestDeadlinesAreComputedWhereTheStoreHasNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.0")
	s := recovered(t, opened(t, path))
	set(t, s, "a", "@1", 1)
	seal(t, s)
	require.Empty(t, due(s))
	require.NoError(t, s.Close())

	s = recovered(t, opened(t, path, store.WithDeadline(deadline)))
	require.Equal(t, []store.DueEntry{{Key: "a", Ms: 1}}, due(s))
	set(t, s, "b", "@2", 2)
	seal(t, s)
	require.NoError(t, s.Close())

	s = recovered(t, opened(t, path)) // the deadlines are not updated now
	set(t, s, "a", "over", 3)
	set(t, s, "c", "@3", 4)
	seal(t, s)
	require.NoError(t, s.Close())

	s = opened(t, path, store.WithDeadline(deadline))
	require.Equal(t, []store.DueEntry{{Key: "b", Ms: 2}, {Key: "c", Ms: 3}}, due(s))
}

func TestPanickingDeadlineIsAnError(t *testing.T) {
	panics := store.WithDeadline(func(row []byte) (int64, bool) { panic(string(row)) })
	s := recovered(t, store.InMemory(panics))
	err := s.Set("k", []byte("secret"))
	require.ErrorIs(t, err, store.ErrDeadline)
	require.NotContains(t, err.Error(), "secret")
	require.Empty(t, rows(t, s))

	path := filepath.Join(t.TempDir(), "table.0")
	d := opened(t, path)
	set(t, d, "k", "secret", 1)
	require.NoError(t, d.Close())
	_, err = store.Open(path, panics)
	require.ErrorIs(t, err, store.ErrDeadline)
	require.ErrorContains(t, err, path)
	require.NoError(t, opened(t, path).Close(), "the path is free again")
}
