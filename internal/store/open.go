package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/util"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// openLevel opens a directory, checks its format or writes that of a new store, and fills the due-index if there is a
// deadline function.
func openLevel(path string, deadline func([]byte) (int64, bool), due *DueIndex) (*level, error) {
	l, err := openFiles(path)
	if err != nil {
		return nil, err
	}
	if err = l.checkFormat(); err == nil {
		err = l.openDeadlines(deadline, due)
	}
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// checkFormat writes the version of a new store and returns an error for a format that this code cannot read.
func (l *level) checkFormat() error {
	version, ok, err := l.meta(formatKey)
	switch {
	case err != nil:
		return err
	case ok && version > formatVersion:
		return fmt.Errorf("%w: %s has format %d, this version of the module reads up to %d",
			ErrNewerFormat, l.path, version, formatVersion)
	case ok && version < 1:
		return l.damaged(fmt.Sprintf("format %d", version))
	case ok:
		return nil
	}
	all := l.cursor(nil)
	defer all.release()
	switch filled := all.next(); {
	case all.err() != nil:
		return all.err()
	case filled: // for example one of stock Goka
		return l.damaged("the database there is not a store of this module")
	}
	return l.named("write", l.db.Put(formatKey, number(formatVersion), nil))
}

// openDeadlines fills the due-index from the rows of deadlines. If the store was last open without a deadline function, it
// computes those rows first.
func (l *level) openDeadlines(deadline func([]byte) (int64, bool), due *DueIndex) error {
	_, timed, err := l.meta(timedKey)
	switch l.timed = deadline != nil; {
	case err != nil:
		return err
	case !l.timed && timed: // from here on the rows of deadlines are not updated
		return l.named("write", l.db.Delete(timedKey, nil))
	case !l.timed:
		return nil
	case !timed:
		if err := l.computeDeadlines(deadline); err != nil {
			return err
		}
	}
	rows := l.cursor(&util.Range{Start: []byte{deadlineSpace}, Limit: []byte{rowSpace}})
	defer rows.release()
	for rows.next() {
		if v := rows.value(); len(v) == 8 {
			due.Set(string(rows.key()), int64(binary.BigEndian.Uint64(v)))
			continue
		}
		return l.damaged("a deadline is not 8 bytes long")
	}
	return rows.err()
}

// computeDeadlines rewrites the rows of deadlines from the rows. It writes timedKey last, so that it runs again after a
// crash.
func (l *level) computeDeadlines(deadline func([]byte) (int64, bool)) error {
	var batch leveldb.Batch
	write := func(atLeast int) error {
		if batch.Len() < atLeast {
			return nil
		}
		defer batch.Reset()
		return l.named("write", l.db.Write(&batch, nil))
	}
	stale := l.cursor(&util.Range{Start: []byte{deadlineSpace}, Limit: []byte{rowSpace}})
	defer stale.release()
	for stale.next() {
		batch.Delete(inSpace(deadlineSpace, string(stale.key())))
		if err := write(batchRows); err != nil {
			return err
		}
	}
	rows := l.scan(nil, nil)
	defer rows.release()
	for rows.next() {
		if runtimeapi.IsPart(string(rows.key())) {
			continue
		}
		ms, ok, err := dueOf(deadline, rows.value())
		if err != nil {
			return fmt.Errorf("%w: %s", err, l.path)
		}
		if ok {
			batch.Put(inSpace(deadlineSpace, string(rows.key())), number(ms))
		}
		if err := write(batchRows); err != nil {
			return err
		}
	}
	if err := errors.Join(stale.err(), rows.err()); err != nil {
		return err
	}
	batch.Put(timedKey, number(1))
	return write(1)
}

func number(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }
