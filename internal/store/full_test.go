package store

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/syndtr/goleveldb/leveldb"
	ldb "github.com/syndtr/goleveldb/leveldb/storage"
)

var errFull = errors.New("no space left")

// filling is a disk that has no room for tables once it is full.
type filling struct {
	ldb.Storage
	full atomic.Bool
}

func (f *filling) Create(fd ldb.FileDesc) (ldb.Writer, error) {
	if f.full.Load() && fd.Type == ldb.TypeTable {
		return nil, errFull
	}
	return f.Storage.Create(fd)
}

// The instance closes a store that could not be written and restarts. By default LevelDB writes batches larger than its
// buffer in a transaction; if the transaction fails to begin, LevelDB keeps a lock that its Close waits for.
func TestStoreOnAFullDiskCanBeClosed(t *testing.T) {
	files := &filling{Storage: ldb.NewMemStorage()}
	db, err := leveldb.Open(files, options(0))
	require.NoError(t, err)
	l := &level{path: "full", files: files, db: db}
	write := func(key string, size int) error {
		cut := newLayer()
		cut.put(key, row{value: make([]byte, size)})
		return l.write(cut)
	}
	require.NoError(t, write("small", 1))
	files.full.Store(true)
	for range 3 {
		if err = write("large", 2*batchBytes); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, errFull)

	closed := make(chan error, 1)
	go func() { closed <- l.close() }()
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Fatal("the store cannot be closed")
	}
}
