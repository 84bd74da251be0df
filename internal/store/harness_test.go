package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/lovoo/goka/storage"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/store"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(writerPath); path != "" {
		fmt.Fprintln(os.Stderr, writeForEver(path))
		os.Exit(1)
	}
	// LevelDB's pool outlives its database by a second, whatever one does.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"))
}

// onBoth runs a test on a store on disk and on one in memory.
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
