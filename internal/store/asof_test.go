package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/store"
	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
)

var noon = time.UnixMilli(1_700_000_000_000)

func requireAsOf(t require.TestingT, s *store.Store, want time.Time) {
	at, ok, err := s.AsOf()
	require.NoError(t, err)
	require.True(t, ok)
	require.True(t, want.Equal(at), "%s, not %s", at, want)
}

func TestAgeIsStoredOnceTheBaseHasReachedTheEnd(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		s := open()
		_, known, err := s.AsOf()
		require.NoError(t, err)
		require.False(t, known, "a new store, and one of an older build")
		reached, err := s.SetAsOf(noon, 0)
		require.NoError(t, err)
		require.True(t, reached, "an empty changelog")

		recovered(t, s)
		set(t, s, "k", "v", 7)
		reached, err = s.SetAsOf(noon.Add(time.Hour), 8)
		require.NoError(t, err)
		require.False(t, reached, "the row is in the open layer")
		require.True(t, s.Seal())
		reached, err = s.SetAsOf(noon.Add(time.Hour), 8)
		require.NoError(t, err)
		require.False(t, reached, "the row is in the sealed layer")
		requireAsOf(t, s, noon)

		require.NoError(t, s.Flush())
		reached, err = s.SetAsOf(noon.Add(time.Hour), 8)
		require.NoError(t, err)
		require.True(t, reached)
		reached, err = s.SetAsOf(noon.Add(2*time.Hour), 9)
		require.NoError(t, err)
		require.False(t, reached)
		reached, err = s.SetAsOf(noon.Add(time.Minute), 8)
		require.NoError(t, err)
		require.True(t, reached, "a clock that was put back is believed")
		requireAsOf(t, s, noon.Add(time.Minute))

		path := s.Path()
		require.NoError(t, s.Close())
		_, err = s.SetAsOf(noon, 0)
		require.ErrorIs(t, err, store.ErrClosed)
		if path == "" {
			s, err = s.Reopen()
			require.NoError(t, err)
		} else {
			s = opened(t, path)
		}
		requireAsOf(t, s, noon.Add(time.Minute))
	})
}

func TestEmptyStoreHasNeitherRowsNorOffset(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		s := recovered(t, open())
		require.True(t, empty(t, s))
		_, err := s.SetAsOf(noon, 0)
		require.NoError(t, err)
		require.True(t, empty(t, s))
		require.NoError(t, s.Set("k", []byte("v")))
		seal(t, s)
		require.False(t, empty(t, s), "a row without an offset")
	})
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		s := recovered(t, open())
		set(t, s, "k", "v", 0)
		require.NoError(t, s.Delete("k"))
		seal(t, s)
		require.False(t, empty(t, s), "an offset without rows")
	})
}

func empty(t *testing.T, s *store.Store) bool {
	t.Helper()
	is, err := s.Empty()
	require.NoError(t, err)
	return is
}

// A power loss sets a store back to an earlier cut. Its age must go back with the rows: a store that looks younger than
// its rows would be trusted with tombstones that are gone.
func TestPowerLossLeavesNoAgeThatIsAheadOfTheRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.0")
	s := recovered(t, opened(t, path))
	const cuts = 20
	for i := range int64(cuts) {
		require.NoError(t, s.Set(fmt.Sprint(i), make([]byte, 300*(i%5))))
		require.NoError(t, s.SetOffset(i))
		seal(t, s)
		reached, err := s.SetAsOf(noon.Add(time.Duration(i)*time.Hour), i+1)
		require.NoError(t, err)
		require.True(t, reached)
	}
	require.NoError(t, s.Close())
	journal := filepath.Base(one(t, path, "*.log"))
	raw, err := os.ReadFile(filepath.Join(path, journal))
	require.NoError(t, err)

	tries, dir := 0, t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		tries++
		to := filepath.Join(dir, fmt.Sprint(tries))
		require.NoError(rt, os.CopyFS(to, os.DirFS(path)))
		require.NoError(rt, os.Truncate(filepath.Join(to, journal), int64(rapid.IntRange(0, len(raw)).Draw(rt, "length"))))
		s, err := store.Open(to)
		require.NoError(rt, err)
		at, known, err := s.AsOf()
		require.NoError(rt, err)
		if known {
			require.GreaterOrEqual(rt, offset(t, s), int64(at.Sub(noon)/time.Hour))
		}
		require.NoError(rt, s.Close())
	})
}

func TestRemovedStoreIsEmptyWhenItIsOpenedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.0")
	fill := func() {
		s := recovered(t, opened(t, path))
		set(t, s, "k", "v", 1)
		seal(t, s)
		require.NoError(t, s.Close())
	}
	fill()
	require.NoError(t, store.Remove(path))
	require.NoDirExists(t, path)
	require.Empty(t, rows(t, opened(t, path)))

	t.Run("after a crash in the middle", func(t *testing.T) {
		path = filepath.Join(t.TempDir(), "table.0")
		fill()
		require.NoError(t, os.Rename(path, path+".removed")) // and one file of it is deleted
		require.NoError(t, os.Remove(filepath.Join(path+".removed", "CURRENT")))
		require.Empty(t, rows(t, opened(t, path)))
		require.NoDirExists(t, path+".removed")
	})
}
