package store_test

import (
	"fmt"
	"testing"

	"github.com/lovoo/goka/storage"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/store"
)

// layers is a store with b d f in the base, c and d in the sealed layer, a and e in the open one, f deleted above.
func layers(t *testing.T, open func(...store.Option) *store.Store) *store.Store {
	t.Helper()
	s := recovered(t, open())
	for _, k := range []string{"b", "d", "f"} {
		set(t, s, k, "base", 1)
	}
	seal(t, s)
	set(t, s, "c", "sealed", 2)
	set(t, s, "d", "sealed", 3)
	require.True(t, s.Seal())
	set(t, s, "a", "open", 4)
	set(t, s, "e", "open", 5)
	require.NoError(t, s.Delete("f"))
	return s
}

func keys(it storage.Iterator) (got string) {
	for it.Next() {
		got += string(it.Key())
	}
	return got
}

func TestRangeIsHalfOpen(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		s := layers(t, open)
		for name, c := range map[string]struct {
			start, limit []byte
			want         string
		}{
			"unbounded":        {nil, nil, "abcde"},
			"empty bounds":     {[]byte{}, []byte{}, "abcde"},
			"start":            {[]byte("c"), nil, "cde"},
			"limit":            {nil, []byte("c"), "ab"},
			"both":             {[]byte("b"), []byte("e"), "bcd"},
			"between keys":     {[]byte("bb"), []byte("dd"), "cd"},
			"nothing":          {[]byte("c"), []byte("c"), ""},
			"limit before":     {[]byte("d"), []byte("b"), ""},
			"behind the end":   {[]byte("f"), nil, ""},
			"limit behind end": {[]byte("e"), []byte("z"), "e"},
		} {
			it, err := s.IteratorWithRange(c.start, c.limit)
			require.NoError(t, err)
			require.Equal(t, c.want, keys(it), name)
			require.NoError(t, it.Err())
			it.Release()
		}
	})
}

func TestSeekFindsTheFirstKeyNotBefore(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		s := layers(t, open)
		it, err := s.IteratorWithRange([]byte("b"), []byte("e"))
		require.NoError(t, err)
		defer it.Release()
		for _, c := range []struct{ seek, want string }{
			{"", "bcd"},
			{"a", "bcd"},
			{"b", "bcd"},
			{"ba", "cd"},
			{"d", "d"},
			{"c", "cd"},
			{"dd", ""},
			{"e", ""},
			{"z", ""},
			{"b", "bcd"},
		} {
			require.Equal(t, c.want != "", it.Seek([]byte(c.seek)), c.seek)
			require.Equal(t, c.want, keys(it), "as storage.Iterator says: Next gives the pair that was found")

			got := ""
			for ok := it.Seek([]byte(c.seek)); ok; ok = it.Next() {
				got += string(it.Key())
			}
			require.Equal(t, c.want, got, "as Goka does: the pair that was found is read, then Next gives the following")
			require.Nil(t, it.Key())
		}
	})
}

func TestGokaMergesIteratorsOfStores(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		one := layers(t, open)
		two := recovered(t, store.InMemory())
		for i, k := range []string{"aa", "cc", "x"} {
			set(t, two, k, "two", int64(i))
		}
		i1, err := one.Iterator()
		require.NoError(t, err)
		i2, err := two.Iterator()
		require.NoError(t, err)
		it := storage.NewMultiIterator([]storage.Iterator{i1, i2})
		defer it.Release()
		require.Equal(t, "aaabcccdex", keys(it))
		require.True(t, it.Seek([]byte("c")))
		require.Equal(t, "cccdex", keys(it))
	})
}

func TestIteratorReadsASnapshot(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		s := layers(t, open)
		it, err := s.Iterator()
		require.NoError(t, err)
		require.True(t, it.Next())
		require.NoError(t, s.Flush())
		for _, k := range []string{"a", "b", "c", "d", "e", "f"} {
			set(t, s, k, "later", 9)
		}
		require.NoError(t, s.Delete("c"))
		seal(t, s)
		got := "a"
		for it.Next() {
			v, err := it.Value()
			require.NoError(t, err)
			got += fmt.Sprintf(" %s=%s", it.Key(), v)
		}
		require.Equal(t, "a b=base c=sealed d=sealed e=open", got)
		it.Release()
	})
}

func TestIteratorHasNoPairBeforeNextAndAfterTheEnd(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		s := layers(t, open)
		it, err := s.Iterator()
		require.NoError(t, err)
		nowhere := func() {
			require.Nil(t, it.Key())
			v, err := it.Value()
			require.NoError(t, err)
			require.Nil(t, v)
		}
		nowhere()
		require.Equal(t, "abcde", keys(it))
		nowhere()
		require.False(t, it.Next())
		it.Release()
		it.Release()
		nowhere()
		require.False(t, it.Next())
		require.False(t, it.Seek(nil))
		require.NoError(t, it.Err())
	})
}

func TestClosingTheStoreEndsItsIterators(t *testing.T) {
	onBoth(t, func(t *testing.T, open func(...store.Option) *store.Store) {
		s := layers(t, open)
		it, err := s.Iterator()
		require.NoError(t, err)
		require.True(t, it.Next())
		require.NoError(t, s.Close())
		require.Nil(t, it.Key())
		require.False(t, it.Next())
		require.ErrorIs(t, it.Err(), store.ErrClosed)
		it.Release()
	})
}
