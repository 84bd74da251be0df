package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/lovoo/goka/storage"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/store"
)

func TestMain(m *testing.M) {
	// LevelDB's pool outlives its database by a second, whatever one does.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"))
}

// onBoth runs a test on a store on disk and on one in memory; reopen gives a fresh one on the same base, where there is
// one.
func onBoth(t *testing.T, test func(t *testing.T, open func(...store.Option) *store.Store)) {
	t.Run("disk", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "table.0")
		test(t, func(opts ...store.Option) *store.Store { return opened(t, path, opts...) })
	})
	t.Run("memory", func(t *testing.T) {
		test(t, func(opts ...store.Option) *store.Store { return store.InMemory(opts...) })
	})
}

func opened(t *testing.T, path string, opts ...store.Option) *store.Store {
	t.Helper()
	s, err := store.Open(path, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func recovered(t *testing.T, s *store.Store) *store.Store {
	t.Helper()
	require.NoError(t, s.MarkRecovered())
	return s
}

func set(t *testing.T, s *store.Store, key, value string, offset int64) {
	t.Helper()
	require.NoError(t, s.Set(key, []byte(value)))
	require.NoError(t, s.SetOffset(offset))
}

// rows reads a store to its end; read by key they must be the same.
func rows(t *testing.T, s *store.Store) map[string]string {
	t.Helper()
	it, err := s.Iterator()
	require.NoError(t, err)
	got := drain(t, it)
	for k, v := range got {
		read, err := s.Get(k)
		require.NoError(t, err)
		require.Equal(t, v, string(read), "key %q", k)
		has, err := s.Has(k)
		require.NoError(t, err)
		require.True(t, has)
	}
	return got
}

func drain(t *testing.T, it storage.Iterator) map[string]string {
	t.Helper()
	defer it.Release()
	got, last := map[string]string{}, ""
	for it.Next() {
		k := string(it.Key())
		require.True(t, len(got) == 0 || last < k, "%q is not after %q", k, last)
		v, err := it.Value()
		require.NoError(t, err)
		got[k], last = string(v), k
	}
	require.NoError(t, it.Err())
	return got
}

func offset(t *testing.T, s *store.Store) int64 {
	t.Helper()
	o, err := s.GetOffset(-3)
	require.NoError(t, err)
	return o
}

func seal(t *testing.T, s *store.Store) {
	t.Helper()
	require.True(t, s.Seal())
	require.NoError(t, s.Flush())
}

func TestReadsSeeOpenOverSealedOverBase(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		s := recovered(t, open())
		set(t, s, "base", "1", 1)
		set(t, s, "both", "1", 2)
		set(t, s, "gone", "1", 3)
		seal(t, s)
		set(t, s, "both", "2", 4)
		require.NoError(t, s.Delete("gone"))
		require.True(t, s.Seal())
		set(t, s, "open", "3", 5)
		require.Equal(t, map[string]string{"base": "1", "both": "2", "open": "3"}, rows(t, s))
		set(t, s, "both", "3", 6)
		set(t, s, "gone", "3", 7)
		want := map[string]string{"base": "1", "both": "3", "gone": "3", "open": "3"}
		require.Equal(t, want, rows(t, s))
		require.EqualValues(t, 7, offset(t, s))

		require.NoError(t, s.Flush())
		require.Equal(t, want, rows(t, s))
	})
}

func TestDiskHoldsTheLastFlushedCutOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.0")
	s := recovered(t, opened(t, path))
	set(t, s, "a", "1", 10)
	set(t, s, "b", "1", 11)
	seal(t, s)
	set(t, s, "a", "2", 12)
	require.True(t, s.Seal()) // sealed, never flushed
	set(t, s, "c", "3", 13)
	require.NoError(t, s.Close())

	s = opened(t, path)
	require.Equal(t, map[string]string{"a": "1", "b": "1"}, rows(t, s))
	require.EqualValues(t, 11, offset(t, s))
}

func TestSealWaitsForTheFlushBefore(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		s := recovered(t, open())
		require.False(t, s.Seal(), "nothing was written")
		require.NoError(t, s.Flush())
		set(t, s, "a", "1", 1)
		require.True(t, s.Seal())
		set(t, s, "b", "2", 2)
		require.False(t, s.Seal(), "a cut is sealed")
		n, bytes := s.Pending()
		require.Equal(t, []int{1, 2}, []int{n, bytes})
		require.NoError(t, s.Flush())
		require.True(t, s.Seal())
		n, bytes = s.Pending()
		require.Equal(t, []int{0, 0}, []int{n, bytes})
		require.NoError(t, s.Flush())
		require.Equal(t, map[string]string{"a": "1", "b": "2"}, rows(t, s))
	})
}

func TestDiscardGoesBackToTheLastSeal(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		s := recovered(t, open())
		set(t, s, "base", "1", 1)
		seal(t, s)
		set(t, s, "sealed", "1", 2)
		require.True(t, s.Seal())
		set(t, s, "base", "2", 3)
		set(t, s, "sealed", "2", 4)
		set(t, s, "open", "2", 5)
		require.NoError(t, s.Discard())
		require.Equal(t, map[string]string{"base": "1", "sealed": "1"}, rows(t, s))
		require.EqualValues(t, 2, offset(t, s))
	})
}

func TestOffsetNeverGoesBack(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		s := recovered(t, open())
		require.EqualValues(t, -3, offset(t, s), "the default")
		for _, step := range []struct{ set, want int64 }{{0, 0}, {7, 7}, {3, 7}, {-1, 7}, {8, 8}} {
			require.NoError(t, s.SetOffset(step.set))
			require.Equal(t, step.want, offset(t, s))
			s.Seal()
			require.NoError(t, s.Flush())
			require.Equal(t, step.want, offset(t, s))
		}
	})
}

func TestRecoveryWritesInBatchesWithTheOffsetOfTheirRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.0")
	s := opened(t, path)
	for i := range 2500 {
		set(t, s, fmt.Sprintf("%04d", i), "v", int64(i))
		require.False(t, s.Seal(), "recovery is no cut")
	}
	require.Len(t, rows(t, s), 2500, "rows that wait for their batch are read too")
	require.EqualValues(t, 2499, offset(t, s))

	require.NoError(t, s.Discard())
	require.Len(t, rows(t, s), 2500, "what recovery wrote is committed")
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
	require.NoError(t, s.Discard())

	require.NoError(t, s.Kill())

	s = recovered(t, opened(t, path, store.WithThrough()))
	require.Equal(t, map[string]string{"a": "1"}, rows(t, s))
	require.EqualValues(t, 5, offset(t, s))
	require.NoError(t, s.Set("b", []byte("2"))) // its offset never comes
	require.NoError(t, s.Close())
	require.Equal(t, map[string]string{"a": "1", "b": "2"}, rows(t, opened(t, path)))
}

func TestNilDeletesAndNoBytesAreAValue(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		s := recovered(t, open())
		for _, flush := range []bool{false, true} {
			require.NoError(t, s.Set("empty", []byte{}))
			require.NoError(t, s.Set("nil", []byte("x")))
			if flush {
				seal(t, s)
			}
			require.NoError(t, s.Set("nil", nil))
			if flush {
				seal(t, s)
			}
			got, err := s.Get("empty")
			require.NoError(t, err)
			require.NotNil(t, got)
			require.Empty(t, got)
			got, err = s.Get("nil")
			require.NoError(t, err)
			require.Nil(t, got)
			has, err := s.Has("nil")
			require.NoError(t, err)
			require.False(t, has)
			require.Equal(t, map[string]string{"empty": ""}, rows(t, s))
		}
	})
}

func TestKeysMayBeAnything(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		s := recovered(t, open())
		want := map[string]string{}
		for i, k := range []string{"", "__offset", "\x00offset", "\x00format", "\x01", "\x02", "\xff\xff", "k\x00001", "ключ"} {
			want[k] = fmt.Sprint(i)
			set(t, s, k, want[k], int64(i))
		}
		require.Equal(t, want, rows(t, s))
		seal(t, s)
		require.Equal(t, want, rows(t, s))
		require.EqualValues(t, 8, offset(t, s))
	})
}

func TestValuesAreCopiedInAndOut(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		s := recovered(t, open())
		in := []byte("v")
		require.NoError(t, s.Set("k", in))
		in[0] = 'x'
		for range 2 {
			out, err := s.Get("k")
			require.NoError(t, err)
			require.Equal(t, "v", string(out))
			out[0] = 'x'
			it, err := s.Iterator()
			require.NoError(t, err)
			require.True(t, it.Next())
			out, err = it.Value()
			require.NoError(t, err)
			out[0] = 'x'
			it.Release()
			require.Equal(t, map[string]string{"k": "v"}, rows(t, s))
			if s.Seal() {
				require.NoError(t, s.Flush())
			}
		}
	})
}

func TestClosedStoreSaysSo(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		s := recovered(t, open())
		require.NoError(t, s.Open())
		set(t, s, "a", "1", 1)
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
		require.False(t, s.Seal())
		_, getErr := s.Get("a")
		_, hasErr := s.Has("a")
		_, offsetErr := s.GetOffset(0)
		_, iterErr := s.Iterator()
		for i, err := range []error{
			getErr, hasErr, offsetErr, iterErr, s.Open(), s.Set("a", nil), s.Delete("a"), s.SetOffset(9), s.Flush(),
			s.Discard(), s.MarkRecovered(),
		} {
			require.ErrorIs(t, err, store.ErrClosed, "%d", i)
		}
	})
}

func TestReadersWritersAndFlushesRunBesideEachOther(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		const writes = 400
		s := recovered(t, open(store.WithDeadline(deadline)))
		var running errgroup.Group
		done := make(chan struct{})
		for range 2 {
			running.Go(func() error {
				for {
					select {
					case <-done:
						return nil
					default:
					}
					s.Due().PopDue(10, 1)
					it, err := s.Iterator()
					if err != nil {
						return err
					}
					for it.Next() {
						if _, err = s.Get(string(it.Key())); err != nil {
							return err
						}
					}
					it.Release()
				}
			})
		}
		for i := range writes {
			set(t, s, fmt.Sprint(i%50), fmt.Sprint(i), int64(i))
			if i%7 == 0 && s.Seal() {
				running.Go(s.Flush)
			}
		}
		close(done)
		require.NoError(t, running.Wait())
		require.Len(t, rows(t, s), 50)
		require.EqualValues(t, writes-1, offset(t, s))
	})
}

func TestBuilderNamesThePathByTopicAndPartition(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Builder(dir)("agent-streams-table", 3)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "agent-streams-table.3"), s.Path())
	_, err = os.Stat(s.Path())
	require.NoError(t, err)
	require.NoError(t, s.Close())

	s, err = store.Builder("", store.WithThrough())("t", 0)
	require.NoError(t, err)
	require.Empty(t, s.Path())
	require.NoError(t, s.Close())
}
