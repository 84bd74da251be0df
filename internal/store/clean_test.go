package store_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/store"
)

func onDisk(t *testing.T, opts ...store.Option) *store.Store {
	t.Helper()
	s, err := store.Open(t.TempDir(), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.MarkRecovered())
	return s
}

func flush(t *testing.T, s *store.Store) {
	t.Helper()
	require.True(t, s.Seal())
	require.NoError(t, s.Flush())
}

func TestRowThatWasWrittenOrReadIsNotReadFromDiskAgain(t *testing.T) {
	s := onDisk(t)
	require.NoError(t, s.Set("written", []byte("1")))
	flush(t, s)
	reads := s.CountReads()
	for range 3 {
		v, err := s.Get("written")
		require.NoError(t, err)
		require.Equal(t, "1", string(v))
	}
	require.Zero(t, *reads)
	require.NoError(t, s.Delete("written"))
	flush(t, s)
	v, err := s.Get("written")
	require.NoError(t, err)
	require.Nil(t, v)
}

func TestRowThatIsReadWhileANewerOneIsFlushedIsNotKept(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(dir)
	require.NoError(t, err)
	require.NoError(t, s.Set("a", []byte("old")))
	require.NoError(t, s.SetOffset(1))
	require.NoError(t, s.MarkRecovered())
	defer func() { require.NoError(t, s.Close()) }()

	entered, leave := s.HoldRead()
	read := make(chan string)
	go func() {
		v, _ := s.Get("a")
		read <- string(v)
	}()
	<-entered
	require.NoError(t, s.Set("a", []byte("new")))
	flush(t, s)
	for i := range store.CleanBytes / 1000 { // what was written is not kept any more
		require.NoError(t, s.Set(strconv.Itoa(i), make([]byte, 1000)))
	}
	flush(t, s)
	close(leave)
	require.Equal(t, "old", <-read)
	v, err := s.Get("a")
	require.NoError(t, err)
	require.Equal(t, "new", string(v))
}

func TestCachedRowsAreBounded(t *testing.T) {
	s := onDisk(t)
	const size = 10_000
	n := 2 * store.CleanBytes / size
	for i := range n {
		require.NoError(t, s.Set(strconv.Itoa(i), make([]byte, size)))
	}
	flush(t, s)
	reads := s.CountReads()
	for i := range n {
		v, err := s.Get(strconv.Itoa(i))
		require.NoError(t, err)
		require.Len(t, v, size)
	}
	require.GreaterOrEqual(t, *reads, n/2)
}

func TestSharedRowsAreNotCopied(t *testing.T) {
	value := []byte("row")
	for _, shared := range []bool{false, true} {
		var opts []store.Option
		if shared {
			opts = append(opts, store.WithShared())
		}
		s := onDisk(t, opts...)
		require.NoError(t, s.Set("a", value))
		for range 2 { // from the layer, and from what is kept of the base
			v, err := s.Get("a")
			require.NoError(t, err)
			require.Equal(t, value, v)
			require.Equal(t, shared, &v[0] == &value[0])
			s.Seal()
			require.NoError(t, s.Flush())
		}
	}
}
