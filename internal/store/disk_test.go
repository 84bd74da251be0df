package store_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lovoo/goka/storage"
	"github.com/stretchr/testify/require"
	"github.com/syndtr/goleveldb/leveldb"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/store"
)

func TestPathInUseIsRefusedByName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.0")
	s := opened(t, path)
	_, err := store.Open(path)
	require.ErrorIs(t, err, store.ErrInUse)
	require.ErrorContains(t, err, path)

	require.NoError(t, s.Close())
	opened(t, path)
}

func TestPathThatIsNoDirectoryIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.0")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err := store.Open(path)
	require.ErrorContains(t, err, path)
	require.NotErrorIs(t, err, store.ErrDamaged)
}

func TestNewerFormatIsRefusedByName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.0")
	require.NoError(t, opened(t, path).Close())
	db, err := leveldb.OpenFile(path, nil)
	require.NoError(t, err)
	require.NoError(t, db.Put([]byte("\x00format"), binary.BigEndian.AppendUint64(nil, 2), nil))
	require.NoError(t, db.Close())

	_, err = store.Open(path)
	require.ErrorIs(t, err, store.ErrNewerFormat)
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, "format 2")
}

func TestForeignDatabaseIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.0")
	db, err := leveldb.OpenFile(path, nil)
	require.NoError(t, err)
	stock, err := storage.New(db)
	require.NoError(t, err)
	require.NoError(t, stock.Open())
	require.NoError(t, stock.Set("k", []byte("v")))
	require.NoError(t, stock.Close())

	_, err = store.Open(path)
	requireDamaged(t, err, path)
}

func requireDamaged(t *testing.T, err error, path string) {
	t.Helper()
	require.ErrorIs(t, err, store.ErrDamaged)
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, "delete the directory, it is rebuilt from the changelog")
}

// filled is a closed store with a table, which LevelDB makes of the journal it finds, and a journal.
func filled(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "table.0")
	for life := range int64(2) {
		s := recovered(t, opened(t, path))
		for cut := range int64(20) {
			set(t, s, fmt.Sprintf("%d-%d", life, cut), strings.Repeat("row", 1000), life*20+cut)
			seal(t, s)
		}
		require.NoError(t, s.Close())
	}
	return path
}

// copyOf is a copy of a closed store.
func copyOf(t *testing.T, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.CopyFS(to, os.DirFS(path)))
	return to
}

func TestDamagedFilesAreReportedWithTheRemedy(t *testing.T) {
	path := filled(t)
	for name, damage := range map[string]func(t *testing.T, dir string){
		"entry point is garbage":  func(t *testing.T, dir string) { overwrite(t, one(t, dir, "CURRENT")) },
		"entry point is gone":     func(t *testing.T, dir string) { require.NoError(t, os.Remove(one(t, dir, "CURRENT"))) },
		"manifest is garbage":     func(t *testing.T, dir string) { overwrite(t, one(t, dir, "MANIFEST-*")) },
		"table is gone":           func(t *testing.T, dir string) { require.NoError(t, os.Remove(one(t, dir, "*.ldb"))) },
		"table is garbage":        func(t *testing.T, dir string) { overwrite(t, one(t, dir, "*.ldb")) },
		"journal has a hole":      func(t *testing.T, dir string) { flip(t, one(t, dir, "*.log"), 100) },
		"offset is not a number":  func(t *testing.T, dir string) { put(t, dir, "\x00offset", "seven") },
		"format is not a version": func(t *testing.T, dir string) { put(t, dir, "\x00format", string(make([]byte, 8))) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyOf(t, path)
			damage(t, dir)
			s, err := store.Open(dir)
			if err == nil { // what LevelDB reads late is found late
				t.Cleanup(func() { _ = s.Close() })
				var it storage.Iterator
				it, err = s.Iterator()
				require.NoError(t, err)
				for it.Next() {
					continue
				}
				err = it.Err()
				it.Release()
			}
			requireDamaged(t, err, dir)
		})
	}
}

func one(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	require.NoError(t, err)
	require.NotEmpty(t, found)
	return found[len(found)-1]
}

func overwrite(t *testing.T, file string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("garbage ", 4000)), 0o600))
}

func flip(t testing.TB, file string, at int) {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	raw[at] ^= 0xff
	require.NoError(t, os.WriteFile(file, raw, 0o600))
}

func put(t *testing.T, dir, key, value string) {
	t.Helper()
	db, err := leveldb.OpenFile(dir, nil)
	require.NoError(t, err)
	require.NoError(t, db.Put([]byte(key), []byte(value), nil))
	require.NoError(t, db.Close())
}

func TestCrashWhileTheStoreIsCreatedLeavesNothingToRepair(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "table.0")
	require.NoError(t, opened(t, whole).Close())
	manifest := filepath.Base(one(t, whole, "MANIFEST-*"))

	for name, files := range map[string]map[string]string{
		"in the manifest":                   {manifest: "\x01\x02"},
		"before the manifest is named":      {manifest: "\x01\x02", "CURRENT.0": ""},
		"while it is named":                 {manifest: "\x01\x02", "CURRENT.0": manifest[:4]},
		"where a rename may come too early": {manifest: "\x01\x02", "CURRENT": ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "table.0")
			require.NoError(t, os.MkdirAll(path, 0o700))
			for file, content := range files {
				require.NoError(t, os.WriteFile(filepath.Join(path, file), []byte(content), 0o600))
			}
			s := recovered(t, opened(t, path))
			set(t, s, "a", "1", 1)
			seal(t, s)
			require.NoError(t, s.Close())
			require.Equal(t, map[string]string{"a": "1"}, rows(t, opened(t, path)))
		})
	}
}

// TestJournalOfACrashGivesAnEarlierCutOrIsRefused cuts or damages a journal of small and large cuts at any byte: the
// store is then at one of its cuts, rows and offset, or says that it is damaged. A cut off end is never called damage.
func TestJournalOfACrashGivesAnEarlierCutOrIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.0")
	s := recovered(t, opened(t, path))
	const cuts = 12
	size := func(i int64) int { return []int{10, 5000, 40_000, 100}[i%4] }
	for i := range int64(cuts) {
		require.NoError(t, s.Set(fmt.Sprint(i), make([]byte, size(i))))
		require.NoError(t, s.Set("last", fmt.Append(nil, i)))
		require.NoError(t, s.SetOffset(i))
		seal(t, s)
	}
	require.NoError(t, s.Close())
	journal := filepath.Base(one(t, path, "*.log"))
	raw, err := os.ReadFile(filepath.Join(path, journal))
	require.NoError(t, err)

	tries, dir := 0, t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		tries++
		to := filepath.Join(dir, fmt.Sprint(tries))
		require.NoError(rt, os.CopyFS(to, os.DirFS(path)))
		at, cutOff := rapid.IntRange(0, len(raw)-1).Draw(rt, "at"), rapid.Bool().Draw(rt, "cut off")
		if cutOff {
			require.NoError(rt, os.Truncate(filepath.Join(to, journal), int64(at)))
		} else {
			flip(t, filepath.Join(to, journal), at)
		}
		s, err := store.Open(to)
		if err != nil && !cutOff {
			require.ErrorIs(rt, err, store.ErrDamaged)
			return
		}
		require.NoError(rt, err)
		reached := offset(t, s)
		got := rows(t, s)
		if reached == -3 {
			require.Empty(rt, got)
		} else {
			require.Len(rt, got, int(reached)+2)
			require.Equal(rt, fmt.Sprint(reached), got["last"])
		}
		require.NoError(rt, s.Close())
	})
}
