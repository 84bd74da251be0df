package archive

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/topics"
)

// elsewhere is the same agent on another cluster, which has nothing of it.
func (w *world) elsewhere() *world {
	w.Helper()
	broker, err := embedded.Start(embedded.Config{})
	require.NoError(w, err)
	w.Cleanup(func() { require.NoError(w, broker.Close()) })
	return newEmptyWorld(w.T, broker.Addrs(), w.cfg.Catalog.Agent)
}

func TestRestoredAgentHasRecordsSettingsAndOffsetsOfItsBackup(t *testing.T) {
	t.Parallel()
	w, _ := filledWorld(t, 3)
	input, table, group, loop := w.cfg.Catalog.MessageInput.Name(), w.cfg.Catalog.Table(), string(w.cfg.Catalog.Group()), w.cfg.Catalog.Loop()
	old := time.Now().Add(-1000 * time.Hour).Truncate(time.Millisecond) // far older than the retention of an hour
	long := strings.Repeat("x", 3<<20)
	odd := []*kgo.Record{
		{Topic: table, Key: []byte("deleted"), Timestamp: old}, // a tombstone
		{Topic: input, Partition: 2, Value: []byte("no key"), Timestamp: time.Now().Add(time.Hour / 2).Truncate(time.Millisecond)},
		{Topic: input, Partition: 2, Key: []byte{}, Value: []byte{}, Headers: []kgo.RecordHeader{
			{Key: "null"}, {Key: "twice", Value: []byte("1")}, {Key: "twice", Value: []byte{}}, {Key: "", Value: []byte("2")},
		}},
		{Topic: w.cfg.Catalog.MessageOutput.Name(), Partition: 1, Key: []byte("a"), Value: []byte(long)}, // larger than most topics accept
		{Topic: loop, Key: []byte("a"), Value: []byte("old"), Timestamp: old},
	}
	w.create(3, map[string]string{"max.message.bytes": "4194304", "retention.ms": "60000"}, w.cfg.Catalog.MessageOutput.Name())
	for _, r := range odd {
		w.put(r)
	}
	w.commit("second", loop, 0, 1<<40, "past the end")
	w.commit("second", loop, 1, 0, "")
	unread := w.unread(group, input)
	dir := filepath.Join(t.TempDir(), "backup")
	saved, err := Backup(t.Context(), w.cfg, dir)
	require.NoError(t, err)
	require.Positive(t, saved.Records)

	_, err = Restore(t.Context(), w.cfg, dir)
	require.ErrorIs(t, err, ErrForeign, "the topics have records")
	require.ErrorContains(t, err, "nothing was written")
	require.NotContains(t, w.names(), w.cfg.Catalog.Archive())

	other := w.elsewhere()
	result, err := Restore(t.Context(), other.cfg, dir)
	require.NoError(t, err)
	require.Equal(t, saved, result)
	require.Equal(t, w.names(), other.names())
	for _, name := range w.names() {
		require.Equal(t, w.config(name), other.config(name), name)
		before, after := w.records(name), other.records(name)
		require.Len(t, after, len(before))
		for n := range before {
			require.Len(t, after[n], len(before[n]), "%s/%d", name, n)
			for i, r := range before[n] {
				is := after[n][i]
				at := kgo.RecordHeader{Key: topics.HeaderFirstAt, Value: fmt.Appendf(nil, "%d/%d", n, r.Offset)}
				if name != table {
					r.Headers = append(r.Headers, at)
				}
				require.Equal(t, content(nil, r), content(nil, is), "%s/%d at %d", name, n, r.Offset)
				require.Equal(t, r.Key == nil, is.Key == nil)
				require.Equal(t, r.Value == nil, is.Value == nil)
			}
		}
	}
	require.Equal(t, unread, other.unread(group, input))
	require.NotContains(t, other.offsets(group, input), int32(-1))
	require.Empty(t, other.unread("second", loop)) // one is past the end, the other partition has nothing
	require.NoError(t, other.starts())
}

// A transaction that was aborted, and one whose marker is the last record: an empty fetch is not the end.
func TestMarkersAndAbortedTransactionsAreNoEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	input := w.cfg.Catalog.MessageInput.Name()
	writer, err := kgo.NewClient(kgo.SeedBrokers(w.cfg.Brokers...), kgo.TransactionalID(w.cfg.Catalog.Agent+"-writer"),
		kgo.DefaultProduceTopic(input))
	require.NoError(t, err)
	defer writer.Close()
	write := func(n int, end kgo.TransactionEndTry) {
		require.NoError(t, writer.BeginTransaction())
		for i := range n {
			require.NoError(t, writer.ProduceSync(t.Context(), kgo.StringRecord(fmt.Sprint(i))).FirstErr())
		}
		require.NoError(t, writer.EndTransaction(t.Context(), end))
	}
	write(50, kgo.TryAbort)
	write(2, kgo.TryCommit)
	write(50, kgo.TryAbort)
	write(1, kgo.TryCommit)
	write(3, kgo.TryAbort)
	w.commit(string(w.cfg.Catalog.Group()), input, 0, 54, "") // behind the two, before what follows
	dir := t.TempDir()
	saved, err := Backup(t.Context(), w.cfg, dir)
	require.NoError(t, err)
	require.EqualValues(t, 3, saved.Records)
	_, err = Repartition(t.Context(), w.cfg, 2)
	require.NoError(t, err)
	require.Equal(t, []string{"0"}, w.unread(string(w.cfg.Catalog.Group()), input))
}

func TestBackupContinuesAndAnOlderPartOfOneIsRefused(t *testing.T) {
	t.Parallel()
	w, _ := filledWorld(t, 2)
	dir := t.TempDir()
	for n := 0; ; n++ {
		c, err := connect(w.cfg)
		require.NoError(t, err)
		files := 0
		c.at = func(string) error {
			if files++; files > 2 {
				return errStop
			}
			return nil
		}
		_, err = c.backup(t.Context(), dir)
		c.client.Close()
		if err == nil {
			require.Greater(t, n, 2)
			break
		}
		require.ErrorIs(t, err, errStop)
		_, err = Restore(t.Context(), w.cfg, dir)
		require.ErrorIs(t, err, ErrDirectory, "it is not complete")
	}
	_, err := Backup(t.Context(), w.cfg, dir)
	require.ErrorIs(t, err, ErrDirectory, "it is complete")

	// A part of a backup, and then the agent runs: its offsets and records are not those of the part.
	part := t.TempDir()
	c, err := connect(w.cfg)
	require.NoError(t, err)
	defer c.client.Close()
	c.at = func(string) error { return errStop }
	_, err = c.backup(t.Context(), part)
	require.ErrorIs(t, err, errStop)
	w.commit(string(w.cfg.Catalog.Group()), w.cfg.Catalog.MessageInput.Name(), 0, 1, "")
	_, err = Backup(t.Context(), w.cfg, part)
	require.ErrorIs(t, err, ErrChanged)
	require.ErrorContains(t, err, "name a new directory")
}

func TestBackupRefusesAnAgentThatIsMoved(t *testing.T) {
	t.Parallel()
	w, _ := filledWorld(t, 2)
	move := func() {
		var seen []string
		require.ErrorIs(t, stopAt(t.Context(), w.cfg, 3, 5, &seen), errStop)
	}
	c, err := connect(w.cfg)
	require.NoError(t, err)
	defer c.client.Close()
	begun := false
	c.at = func(string) error {
		if !begun {
			begun = true
			move()
		}
		return nil
	}
	_, err = c.backup(t.Context(), t.TempDir())
	require.ErrorIs(t, err, ErrUnfinished, "it began meanwhile")
	_, err = Backup(t.Context(), w.cfg, t.TempDir())
	require.ErrorIs(t, err, ErrUnfinished)
	require.NoError(t, Undo(t.Context(), w.cfg))
	_, err = Backup(t.Context(), w.cfg, t.TempDir())
	require.NoError(t, err)
}

func TestOffsetsOfALoopOutsideTheCatalogAreSaved(t *testing.T) {
	t.Parallel()
	w, _ := filledWorld(t, 1)
	w.create(1, nil, w.cfg.Catalog.Agent+"-more", "more-loop")
	w.cfg.Specs = []topics.Spec{{Name: w.cfg.Catalog.Agent + "-more"}}
	w.commit("more", w.cfg.Catalog.Agent+"-more", 0, 0, "")
	w.put(&kgo.Record{Topic: "more-loop", Value: []byte("read")})
	w.commit("more", "more-loop", 0, 1, "")
	dir := t.TempDir()
	_, err := Backup(t.Context(), w.cfg, dir)
	require.NoError(t, err)
	d, err := open(dir)
	require.NoError(t, err)
	require.Equal(t, positions{0: {At: 1}}, d.plan.Groups["more"]["more-loop"])
}

func TestDamagedOrMixedBackupIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	w, _ := filledWorld(t, 1)
	dirs := [2]string{t.TempDir(), t.TempDir()}
	for _, dir := range dirs {
		_, err := Backup(t.Context(), w.cfg, dir)
		require.NoError(t, err)
		w.write(w.cfg.Catalog.MessageInput.Name(), "s1", "more")
	}
	whole, err := open(dirs[0])
	require.NoError(t, err)
	broken := fmt.Errorf("connection: %w", io.EOF)
	_, err = whole.readRecords(whole.file(w.cfg.Catalog.MessageInput.Name(), 0), func(*kgo.Record) error { return broken })
	require.ErrorIs(t, err, io.EOF)
	require.NotErrorIs(t, err, ErrDirectory, "an error of the broker is not one of the file")
	other := w.elsewhere()
	name := filepath.Join("topics", w.cfg.Catalog.MessageInput.Name(), "0.records")
	first, err := os.ReadFile(filepath.Join(dirs[0], name))
	require.NoError(t, err)
	second, err := os.ReadFile(filepath.Join(dirs[1], name))
	require.NoError(t, err)
	flipped := append([]byte(nil), second...)
	flipped[len(flipped)/2] ^= 1
	for what, content := range map[string][]byte{
		"of another backup": first, "one bit": flipped, "cut": second[:len(second)-40], "empty": nil, "huge": append(second[:24:24], 255, 255, 255, 255),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dirs[1], name), content, 0o600))
		_, err = Restore(t.Context(), other.cfg, dirs[1])
		require.ErrorIs(t, err, ErrDirectory, what)
		require.Empty(t, other.names())
	}
	plan, err := os.ReadFile(filepath.Join(dirs[0], planFile))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dirs[1], planFile), plan, 0o600))
	_, err = Restore(t.Context(), other.cfg, dirs[1])
	require.ErrorIs(t, err, ErrDirectory, "a plan of another backup")
	_, err = Restore(t.Context(), newEmptyWorld(t, w.cfg.Brokers, "another").cfg, dirs[0])
	require.ErrorIs(t, err, ErrDirectory, "of another agent")
}

func TestRestoreContinuesAfterAKillBeforeEachStep(t *testing.T) {
	t.Parallel()
	w, unread := filledWorld(t, 2)
	dir := t.TempDir()
	_, err := Backup(t.Context(), w.cfg, dir)
	require.NoError(t, err)
	other := w.elsewhere()
	for n := 0; ; n += 2 {
		d, err := open(dir)
		require.NoError(t, err)
		j, err := openJournal(t.Context(), other.cfg, true)
		require.NoError(t, err)
		left := n
		j.cluster.at = func(string) error {
			if left--; left < 0 {
				return errStop
			}
			return nil
		}
		_, err = j.restore(t.Context(), d)
		j.client.Close()
		if err == nil {
			break
		}
		require.ErrorIs(t, err, errStop)
		if n == 4 { // one that has begun can be undone, and begun again
			require.ErrorIs(t, other.starts(), topics.ErrArchive)
			require.NoError(t, Undo(t.Context(), other.cfg))
			require.Empty(t, other.names())
		}
	}
	input := w.cfg.Catalog.MessageInput.Name()
	require.Equal(t, w.byKey(input), other.byKey(input))
	require.Equal(t, w.byKey(w.cfg.Catalog.Table()), other.byKey(w.cfg.Catalog.Table()))
	require.Equal(t, unread, other.unread(string(w.cfg.Catalog.Group()), input))
}
