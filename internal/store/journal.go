package store

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	ldberrors "github.com/syndtr/goleveldb/leveldb/errors"
	"github.com/syndtr/goleveldb/leveldb/journal"
	ldb "github.com/syndtr/goleveldb/leveldb/storage"
)

// neverFilled reports whether the files are those of a crash during the creation of LevelDB: no CURRENT file, or one that was not
// written to its end, and no file that could hold a row.
func neverFilled(files ldb.Storage) bool {
	if _, err := files.GetMeta(); !os.IsNotExist(err) && !ldberrors.IsCorrupted(err) {
		return false
	}
	held, err := files.List(ldb.TypeJournal | ldb.TypeTable)
	return err == nil && len(held) == 0
}

// removeManifests removes the manifests in a directory and what names them.
func removeManifests(path string, files ldb.Storage) error {
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "CURRENT") {
			err = errors.Join(err, os.Remove(filepath.Join(path, e.Name())))
		}
	}
	if err != nil {
		return err
	}
	fds, err := files.List(ldb.TypeManifest)
	for _, fd := range fds {
		if err == nil {
			err = files.Remove(fd)
		}
	}
	return err
}

// tornAtEnd reports whether journals and manifest are damaged only at their end, as after a crash in the middle of a
// write: dropping the end takes the store back to an earlier cut. Complete records after the damage mean that cuts in the
// middle are lost.
func tornAtEnd(files ldb.Storage) bool {
	torn := false
	for _, kind := range []ldb.FileType{ldb.TypeManifest, ldb.TypeJournal} {
		fds, err := files.List(kind)
		if err != nil {
			return false
		}
		slices.SortFunc(fds, func(a, b ldb.FileDesc) int { return int(a.Num - b.Num) })
		var d drops
		for _, fd := range fds {
			if !d.read(files, fd) {
				return false
			}
		}
		torn = torn || d.any
	}
	return torn
}

// drops records whether the journal's reader has dropped something.
type drops struct{ any bool }

func (d *drops) Drop(error) { d.any = true }

// read reads a file to its end and reports whether no complete record follows a drop, in this file or an earlier one.
func (d *drops) read(files ldb.Storage, fd ldb.FileDesc) bool {
	file, err := files.Open(fd)
	if err != nil {
		return false
	}
	defer file.Close()
	records := journal.NewReader(file, d, false, true)
	for {
		record, err := records.Next()
		if err == io.EOF {
			return true
		}
		if err != nil {
			return false
		}
		switch _, err = io.Copy(io.Discard, record); {
		case err == io.ErrUnexpectedEOF: // dropped
		case err != nil || d.any:
			return false
		}
	}
}
