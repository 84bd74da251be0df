package turns

import (
	"bytes"
	"context"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/internal/store"
	"github.com/turntable-streams/turntable/internal/testing/wiretest"
)

// changelog is the topic of the group's table.
func (f *field) changelog() string { return wiretest.NamesOf(f.agent).Group + "-table" }

// readChangelog returns the records of a partition of the table, in order: the committed ones, or those of open and
// aborted transactions too.
func (f *field) readChangelog(partition int32, level kgo.IsolationLevel) []*kgo.Record {
	f.Helper()
	topic := f.changelog()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(f.brokers...), kgo.FetchIsolationLevel(level), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().AtStart()}}),
	)
	require.NoError(f, err)
	defer client.Close()
	list := kadm.NewClient(client).ListCommittedOffsets
	if level == kgo.ReadUncommitted() {
		list = kadm.NewClient(client).ListEndOffsets
	}
	ends, err := list(f.ctx, topic)
	require.NoError(f, err)
	end, ok := ends.Lookup(topic, partition)
	require.True(f, ok)
	var records []*kgo.Record
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	for next := int64(0); next < end.Offset; {
		fetches := client.PollFetches(ctx)
		require.NoError(f, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			next = r.Offset + 1
			if !r.Attrs.IsControl() {
				records = append(records, r)
			}
		})
	}
	return records
}

// openStores opens the stores of the table in an instance's directory.
func (f *field) openStores(dir string) (opened map[int32]*store.Store, closing func()) {
	f.Helper()
	prefix := f.changelog() + "."
	found, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	require.NoError(f, err)
	opened = map[int32]*store.Store{}
	for _, path := range found {
		n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), prefix))
		require.NoError(f, err)
		opened[int32(n)], err = store.Open(path, store.WithThrough())
		require.NoError(f, err)
	}
	return opened, func() {
		for _, s := range opened {
			require.NoError(f, s.Close())
		}
	}
}

// storeFollowsLog checks the local stores that an instance leaves, wherever it was ended: each is exactly what the
// committed records of its changelog add up to at its own offset. It is never ahead of the log and lacks nothing.
func (f *field) storeFollowsLog(name, dir string) {
	f.Helper()
	opened, closing := f.openStores(dir)
	defer closing()
	for partition, s := range opened {
		f.storeIs(name, partition, s)
	}
}

func (f *field) storeIs(name string, partition int32, s *store.Store) {
	f.Helper()
	offset, err := s.GetOffset(-1)
	require.NoError(f, err)
	if offset < 0 {
		offset = 0 // Goka does not store the offset of a log's first record: it is read again
	}
	want := map[string][]byte{}
	for _, r := range f.readChangelog(partition, kgo.ReadCommitted()) {
		switch {
		case r.Offset > offset:
		case r.Value == nil:
			delete(want, string(r.Key))
		default:
			want[string(r.Key)] = r.Value
		}
	}
	rows, err := s.Iterator()
	require.NoError(f, err)
	defer rows.Release()
	any := false
	for rows.Next() {
		any = true
		value, err := rows.Value()
		require.NoError(f, err)
		key := string(rows.Key())
		require.True(f, bytes.Equal(want[key], value), "%s: the store of partition %d at offset %d differs for %q", name,
			partition, offset, key)
		delete(want, key)
	}
	require.NoError(f, rows.Err())
	for key, value := range want { // parts of rows are read by key only
		if !strings.Contains(key, "\x00") {
			continue
		}
		found, err := s.Get(key)
		require.NoError(f, err)
		// A part that its row does without goes behind the row, whose offset is the one that counts.
		require.True(f, bytes.Equal(value, found) || found == nil && !f.names(s, key),
			"%s: the store of partition %d at offset %d differs for %q", name, partition, offset, key)
		delete(want, key)
	}
	require.True(f, len(want) == 0 || !any && offset == 0, "%s: the store of partition %d at offset %d lacks rows", name,
		partition, offset)
}

// names tells whether a row of the store names a part.
func (f *field) names(s *store.Store, part string) bool {
	f.Helper()
	key, number, _ := strings.Cut(part, "\x00")
	raw, err := s.Get(key)
	require.NoError(f, err)
	row, err := turnrow.Table.Unmarshal(raw)
	require.NoError(f, err)
	for _, parts := range [][]*turnrow.Part{
		row.HistoryParts, row.CausesParts, row.RequestsParts, row.CallsParts, row.StepsParts,
		row.GetTurn().GetTailParts(), row.GetTurn().GetPromptParts(), row.GetTurn().GetResultsParts(),
	} {
		for _, p := range parts {
			if strconv.FormatUint(uint64(p.Number), 10) == number {
				return true
			}
		}
	}
	return false
}

// transactionalID is that of an instance.
func (f *field) transactionalID(instance string) string {
	return wiretest.NamesOf(f.agent).Group + "/" + instance
}
