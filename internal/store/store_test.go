package store_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/store"
)

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

func TestSealedCutsAreFlushedTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.0")
	s := recovered(t, opened(t, path))
	require.False(t, s.Seal(), "nothing was written")
	require.NoError(t, s.Flush())
	set(t, s, "a", "1", 1)
	require.True(t, s.Seal())
	set(t, s, "a", "2", 2)
	set(t, s, "b", "2", 3)
	require.True(t, s.Seal())
	require.False(t, s.Seal(), "nothing was written since")
	set(t, s, "c", "3", 4)
	require.NoError(t, s.Flush())
	require.NoError(t, s.Kill())

	s = recovered(t, opened(t, path))
	require.Equal(t, map[string]string{"a": "2", "b": "2"}, rows(t, s))
	require.EqualValues(t, 3, offset(t, s))
}

func TestStoreIsHeavyByWhatIsSealed(t *testing.T) {
	s := recovered(t, store.InMemory())
	set(t, s, "small", "1", 1)
	require.True(t, s.Seal())
	require.False(t, s.Heavy())
	set(t, s, "big", strings.Repeat("0", 1<<20), 2)
	require.False(t, s.Heavy(), "it is not sealed")
	require.True(t, s.Seal())
	require.True(t, s.Heavy())
	require.NoError(t, s.Flush())
	require.False(t, s.Heavy())
}

func TestSealWaitsForAFlushThatRuns(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		s := recovered(t, open())
		set(t, s, "a", "1", 1)
		require.True(t, s.Seal())
		entered, leave := s.HoldWrite()
		flushed := make(chan error)
		go func() { flushed <- s.Flush() }()
		<-entered
		set(t, s, "b", "2", 2)
		require.False(t, s.Seal(), "a cut is being flushed")
		n, bytes := s.Pending()
		require.Equal(t, []int{1, 2}, []int{n, bytes})
		close(leave)
		require.NoError(t, <-flushed)
		require.True(t, s.Seal())
		n, bytes = s.Pending()
		require.Equal(t, []int{0, 0}, []int{n, bytes})
		require.NoError(t, s.Flush())
		require.Equal(t, map[string]string{"a": "1", "b": "2"}, rows(t, s))
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

func TestNilDeletesAndAnEmptyValueIsAValue(t *testing.T) {
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

func TestKeysMayBeAnyBytes(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		s := recovered(t, open())
		want := map[string]string{}
		for i, k := range []string{
			"", "__offset", "\x00offset", "\x00format", "\x01", "\x02", "\xff\xff", "k\x00001", "ключ",
		} {
			want[k] = fmt.Sprint(i)
			set(t, s, k, want[k], int64(i))
		}
		for range 2 {
			for k, v := range want {
				got, err := s.Get(k)
				require.NoError(t, err)
				require.Equal(t, v, string(got), "%q", k)
			}
			maps.DeleteFunc(want, func(k, _ string) bool { return part(k) })
			require.Equal(t, want, rows(t, s), "parts of rows are read by key only")
			s.Seal()
			require.NoError(t, s.Flush())
		}
		require.EqualValues(t, 8, offset(t, s))
	})
}

func TestValuesAreCopiedOnGetAndUntilRecoveredOnSet(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		s := open()
		in := []byte("v")
		require.NoError(t, s.Set("k", in))
		in[0] = 'x'
		s = recovered(t, s)
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

func TestClosedStoreReturnsErrClosed(t *testing.T) {
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
			s.MarkRecovered(),
		} {
			require.ErrorIs(t, err, store.ErrClosed, "%d", i)
		}
	})
}

func TestReadersWritersAndFlushesRunConcurrently(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		const writes = 1000
		s := recovered(t, open(store.WithDeadline(deadline)))
		var running errgroup.Group
		done := make(chan struct{})
		for range 2 {
			running.Go(func() error {
				seen := map[string]int{}
				read := func(key string, value []byte) error {
					n, err := strconv.Atoi(string(value))
					if err == nil && n < seen[key] {
						err = fmt.Errorf("key %s went back from %d to %d", key, seen[key], n)
					}
					seen[key] = n
					return err
				}
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
						key := string(it.Key())
						value, err := it.Value()
						if err == nil {
							err = read(key, value)
						}
						if err != nil {
							return err
						}
					}
					it.Release()
					for key := range seen {
						value, err := s.Get(key)
						if err == nil {
							err = read(key, value)
						}
						if err != nil {
							return err
						}
					}
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
	stat, err := os.Stat(s.Path())
	require.NoError(t, err)
	require.Zero(t, stat.Mode().Perm()&0o077, "what people told their agents is not for everybody")
	require.NoError(t, s.Close())

	s, err = store.Builder("", store.WithThrough())("t", 0)
	require.NoError(t, err)
	require.Empty(t, s.Path())
	require.NoError(t, s.Close())
}

// A joined table and a view are read from a changelog for as long as they live: a row in memory that is a piece of a
// response would keep all of it.
func TestRowsOfAChangelogAreCopied(t *testing.T) {
	for name, opts := range map[string][]store.Option{"recovering": nil, "through": {store.WithThrough()}} {
		t.Run(name, func(t *testing.T) {
			s := store.InMemory(opts...)
			if opts != nil {
				require.NoError(t, s.MarkRecovered())
			}
			response := []byte("row and much more")
			require.NoError(t, s.Set("k", response[:3]))
			require.NoError(t, s.SetOffset(1))
			copy(response, "xxx")
			got, err := s.Get("k")
			require.NoError(t, err)
			require.Equal(t, "row", string(got))
			require.NoError(t, s.Close())
		})
	}
}
