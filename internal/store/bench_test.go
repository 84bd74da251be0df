package store_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/lovoo/goka/storage"
	"github.com/stretchr/testify/require"
	"github.com/syndtr/goleveldb/leveldb"

	"github.com/turntable-streams/turntable/internal/store"
)

// BenchmarkStore writes rows of 1 KB to 10,000 keys on a disk: as stock Goka does, row and offset at once; through, one
// batch a row; layered, one batch for a cut of 1,000 rows, flushed in line.
func BenchmarkStore(b *testing.B) {
	const keys, cut = 10_000, 1000
	value := make([]byte, 1024)
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("session-%08d", i)
	}
	write := func(b *testing.B, s storage.Storage, end func(i int) error) {
		require.NoError(b, s.Open())
		require.NoError(b, s.MarkRecovered())
		b.ReportAllocs()
		i := 0
		for ; b.Loop(); i++ {
			if err := s.Set(names[i*7919%keys], value); err != nil {
				b.Fatal(err)
			}
			if err := s.SetOffset(int64(i)); err != nil {
				b.Fatal(err)
			}
			if err := end(i); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(i)/b.Elapsed().Seconds(), "rows/s")
		require.NoError(b, s.Close())
	}
	ours := func(b *testing.B, opts ...store.Option) *store.Store {
		s, err := store.Open(filepath.Join(b.TempDir(), "table.0"), opts...)
		require.NoError(b, err)
		return s
	}
	nothing := func(int) error { return nil }
	cutting := func(s *store.Store) func(int) error {
		return func(i int) error {
			if i%cut == cut-1 && s.Seal() {
				return s.Flush()
			}
			return nil
		}
	}
	b.Run("stock", func(b *testing.B) {
		db, err := leveldb.OpenFile(filepath.Join(b.TempDir(), "table.0"), nil)
		require.NoError(b, err)
		s, err := storage.New(db)
		require.NoError(b, err)
		write(b, s, nothing)
	})
	b.Run("through", func(b *testing.B) { write(b, ours(b, store.WithThrough()), nothing) })
	b.Run("layered", func(b *testing.B) {
		s := ours(b)
		write(b, s, cutting(s))
	})
	b.Run("layered with deadlines", func(b *testing.B) {
		s := ours(b, store.WithDeadline(func(row []byte) (int64, bool) { return int64(len(row)), true }))
		write(b, s, cutting(s))
	})
}

// BenchmarkOpen opens a store of 100,000 rows of 1 KB, 1,000 of which have a deadline.
func BenchmarkOpen(b *testing.B) {
	const count = 100_000
	path := filepath.Join(b.TempDir(), "table.0")
	timed := store.WithDeadline(func(row []byte) (int64, bool) { return 1, row[0] == 1 })
	s, err := store.Open(path, timed)
	require.NoError(b, err)
	for i := range count {
		row := make([]byte, 1024)
		if i%100 == 0 {
			row[0] = 1
		}
		require.NoError(b, s.Set(fmt.Sprintf("session-%08d", i), row))
		require.NoError(b, s.SetOffset(int64(i)))
	}
	require.NoError(b, s.Close())
	b.ReportAllocs()
	for b.Loop() {
		s, err := store.Open(path, timed)
		require.NoError(b, err)
		if n := s.Due().Len(); n != count/100 {
			b.Fatalf("%d deadlines", n)
		}
		require.NoError(b, s.Close())
	}
}
