package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/syndtr/goleveldb/leveldb"
	ldberrors "github.com/syndtr/goleveldb/leveldb/errors"
	"github.com/syndtr/goleveldb/leveldb/filter"
	ldbiterator "github.com/syndtr/goleveldb/leveldb/iterator"
	"github.com/syndtr/goleveldb/leveldb/opt"
	ldb "github.com/syndtr/goleveldb/leveldb/storage"
	"github.com/syndtr/goleveldb/leveldb/util"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// The first byte of a key in LevelDB says what the rest is. A user's key may therefore be any bytes, and the deadlines are
// contiguous: the due-index is read without reading the rows.
const (
	metaSpace     = 0 // the rest names a fact about the store
	deadlineSpace = 1 // the rest is a user's key; the value is its deadline
	rowSpace      = 2 // the rest is a user's key
	endSpace      = 3
)

var (
	formatKey = []byte("\x00format") // the version of this layout
	offsetKey = []byte("\x00offset") // the changelog offset that the rows are at
	asOfKey   = []byte("\x00asof")   // the last time at which the rows were known to be at the end of the changelog
	timedKey  = []byte("\x00timed")  // present while every row's deadline has a row of its own
)

const formatVersion = 1

// level is the backing on a disk.
type level struct {
	path  string
	files ldb.Storage
	db    *leveldb.DB
	timed bool // rows of deadlines are kept
	batch leveldb.Batch
}

const (
	// keptBatch is how many bytes of a batch are kept for the next one.
	keptBatch = 256 << 10
	// batchEntry is the overhead of a row in a batch beside its bytes; it includes the row of its deadline except its key.
	batchEntry = 96
)

func options(strict opt.Strict) *opt.Options {
	return &opt.Options{
		Filter: filter.NewBloomFilter(10), // most keys that are not in the layers are new
		Strict: opt.DefaultStrict | strict,
		// Compressing long histories took a fifth of a processor's time. Rows that are read often are in the layers, or
		// callers keep them decoded.
		Compression: opt.NoCompression,
		// There is one database per partition: with LevelDB's default sizes a processor of sixteen partitions would use
		// 250 MB.
		WriteBuffer:        1 << 20,
		BlockCacheCapacity: 1 << 20,
		// With LevelDB's default triggers a recovery spends most of its time waiting for compactions.
		WriteL0SlowdownTrigger: 32,
		WriteL0PauseTrigger:    48,
		// LevelDB's transactions keep their locks when they fail, and its Close waits for them: a full disk would hang an
		// instance.
		DisableLargeBatchTransaction: true,
	}
}

// openFiles opens the database in a directory. It creates both if they do not exist.
func openFiles(path string) (*level, error) {
	// LevelDB would make the directory readable by every user of the machine, with the conversations in it.
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("store: create %s: %w", path, err)
	}
	if err := os.RemoveAll(path + removed); err != nil { // left by a Remove that was interrupted
		return nil, fmt.Errorf("store: %w", err)
	}
	files, err := ldb.OpenFile(path, false)
	switch {
	case err != nil && isLocked(err):
		return nil, fmt.Errorf("%w: %s is open in another process or in another store of this one", ErrInUse, path)
	case err != nil:
		return nil, fmt.Errorf("store: open %s: %w", path, err)
	}
	l := &level{path: path, files: files}
	// Without the strict options LevelDB skips damaged records of its journal and reads on, which would lose a cut in the
	// middle.
	if l.db, err = leveldb.Open(files, options(opt.StrictJournal|opt.StrictManifest)); ldberrors.IsCorrupted(err) {
		switch {
		case neverFilled(files):
			err = removeManifests(path, files)
		case !tornAtEnd(files):
			return nil, errors.Join(l.named("open", err), files.Close())
		default:
			err = nil
		}
		if err == nil {
			l.db, err = leveldb.Open(files, options(0))
		}
	}
	if err != nil {
		return nil, errors.Join(l.named("open", err), files.Close())
	}
	return l, nil
}

func (l *level) close() error {
	if err := errors.Join(l.db.Close(), l.files.Close()); err != nil {
		return fmt.Errorf("store: close %s: %w", l.path, err)
	}
	return nil
}

func (l *level) get(key string) ([]byte, bool, error) {
	v, err := l.db.Get(inSpace(rowSpace, key), nil)
	if errors.Is(err, leveldb.ErrNotFound) {
		return nil, false, nil
	}
	return v, err == nil, l.named("get", err)
}

func (l *level) has(key string) (bool, error) {
	ok, err := l.db.Has(inSpace(rowSpace, key), nil)
	return ok, l.named("get", err)
}

func (l *level) write(from *layer) error {
	var key, due []byte
	batch := &l.batch // copies what it is given
	if size := from.bytes + len(from.rows)*batchEntry; size > keptBatch {
		batch = &leveldb.Batch{}
		if err := batch.Load(make([]byte, 0, size)); err != nil { // otherwise it would grow and copy repeatedly
			return l.named("write", err)
		}
	} else {
		defer batch.Reset()
	}
	for k, r := range from.rows {
		key = append(append(key[:0], rowSpace), k...)
		if r.value == nil {
			batch.Delete(key)
		} else {
			batch.Put(key, r.value)
		}
		if !l.timed || runtimeapi.IsPart(k) {
			continue
		}
		key[0] = deadlineSpace
		if r.timed {
			due = binary.BigEndian.AppendUint64(due[:0], uint64(r.due))
			batch.Put(key, due)
		} else {
			batch.Delete(key)
		}
	}
	if from.offset != noOffset {
		batch.Put(offsetKey, binary.BigEndian.AppendUint64(nil, uint64(from.offset)))
	}
	return l.named("write", l.db.Write(batch, nil))
}

func (l *level) offset() (int64, error) {
	v, ok, err := l.meta(offsetKey)
	if !ok {
		return noOffset, err
	}
	return v, nil
}

func (l *level) asOf() (int64, bool, error) { return l.meta(asOfKey) }

// setAsOf writes to the same journal as the rows: a power loss that loses rows loses the time too.
func (l *level) setAsOf(ms int64) error {
	return l.named("write", l.db.Put(asOfKey, number(ms), nil))
}

// meta reads a number about the store.
func (l *level) meta(key []byte) (n int64, ok bool, err error) {
	v, err := l.db.Get(key, nil)
	switch {
	case errors.Is(err, leveldb.ErrNotFound):
		return 0, false, nil
	case err != nil:
		return 0, false, l.named("get", err)
	case len(v) != 8:
		return 0, false, l.damaged(fmt.Sprintf("row %q has %d bytes", key[1:], len(v)))
	}
	return int64(binary.BigEndian.Uint64(v)), true, nil
}

func (l *level) scan(start, limit []byte) cursor {
	if len(limit) > 0 && string(start) >= string(limit) {
		return &pairs{at: -1}
	}
	r := &util.Range{Start: inSpace(rowSpace, string(start)), Limit: []byte{endSpace}}
	if len(limit) > 0 {
		r.Limit = inSpace(rowSpace, string(limit))
	}
	return l.cursor(r)
}

func (l *level) cursor(r *util.Range) *levelCursor {
	// A scan must not evict from the cache what callbacks read.
	return &levelCursor{level: l, it: l.db.NewIterator(r, &opt.ReadOptions{DontFillCache: true})}
}

// levelCursor is a cursor over one space of a snapshot.
type levelCursor struct {
	level *level
	it    ldbiterator.Iterator
}

func (c *levelCursor) next() bool           { return c.it.Next() }
func (c *levelCursor) seek(key []byte) bool { return c.it.Seek(inSpace(rowSpace, string(key))) }
func (c *levelCursor) key() []byte          { return c.it.Key()[1:] }
func (c *levelCursor) value() []byte        { return c.it.Value() }
func (c *levelCursor) err() error           { return c.level.named("iterate", c.it.Error()) }
func (c *levelCursor) release()             { c.it.Release() }

func inSpace(space byte, key string) []byte {
	return append(append(make([]byte, 0, 1+len(key)), space), key...)
}

// named adds the path to an error of LevelDB, and the remedy if the files are damaged.
func (l *level) named(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case ldberrors.IsCorrupted(err), errors.Is(err, os.ErrNotExist):
		return l.damaged(err.Error())
	}
	return fmt.Errorf("store: %s %s: %w", doing, l.path, err)
}

func (l *level) damaged(what string) error {
	return fmt.Errorf("%w: %s: %s: delete the directory, it is rebuilt from the changelog", ErrDamaged, l.path, what)
}
