package turns

import (
	"os"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/wiretest"
	"github.com/turntable-streams/turntable/processors"
)

// tableLogs are the different ends of a table's changelog. It contains rows of uncommitted transactions under the keys of
// sessions that continue: a reader that applies them loses the sessions' rows.
func tableLogs() []fault {
	return []fault{
		{name: "table whose log ends in a commit marker", play: func(f *field) { f.logEndsIn(kgo.TryCommit) }, long: true},
		{name: "table whose log ends in an abort marker", play: func(f *field) { f.logEndsIn(kgo.TryAbort) }},
		{name: "table whose log holds markers and aborted rows only", play: nothingButMarkers},
		{
			name: "table whose log ends in an open transaction of a previous owner", play: openOfPreviousOwner,
			only: processors.ExactlyOnce,
		},
		{name: "table whose log ends in an open transaction of another producer", play: openOfOtherProducer, long: true},
	}
}

// notARow is the value of an uncommitted row; it cannot be decoded as a row.
const notARow = "\xff not a row"

// stranger is the transactional id of a writer outside the group. It contains the agent because the faults run
// concurrently on one Kafka.
func (f *field) stranger() string { return "stranger-of-" + f.agent }

// write writes rows to the changelog in a transaction that it leaves open.
func (f *field) write(id string, timeout time.Duration, rows ...*kgo.Record) *kgo.Client {
	f.Helper()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(f.brokers...), kgo.TransactionalID(id), kgo.TransactionTimeout(timeout),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0),
	)
	require.NoError(f, err)
	require.NoError(f, client.BeginTransaction())
	require.NoError(f, client.ProduceSync(f.ctx, rows...).FirstErr())
	return client
}

// lastRows returns the last committed record of each partition, to be written again. If spoilt, the values are not rows.
func (f *field) lastRows(spoilt bool) []*kgo.Record {
	f.Helper()
	var rows []*kgo.Record
	for p := range int32(faultPartitions) {
		records := f.readChangelog(p, kgo.ReadCommitted())
		if len(records) == 0 {
			continue
		}
		last := records[len(records)-1]
		row := &kgo.Record{Topic: last.Topic, Partition: p, Key: last.Key, Value: last.Value}
		if spoilt {
			row.Value = []byte(notARow)
		}
		rows = append(rows, row)
	}
	require.NotEmpty(f, rows)
	return rows
}

// logEndsIn makes the changelog end in a marker: once for a process with a local store, once for one without.
func (f *field) logEndsIn(end kgo.TransactionEndTry) {
	f.Helper()
	i := f.start("a")
	f.ask()
	for _, kept := range []bool{true, false} {
		f.answered(5)
		require.NoError(f, i.Stop())
		client := f.write(f.stranger(), time.Minute, f.lastRows(end == kgo.TryAbort)...)
		require.NoError(f, client.EndTransaction(f.ctx, end))
		client.Close()
		if !kept {
			require.NoError(f, os.RemoveAll(f.dirs["a"]))
		}
		i = f.start("a")
	}
	f.answered(5)
}

// nothingButMarkers: before the first process starts, the changelog contains only aborted rows and their markers.
func nothingButMarkers(f *field) {
	f.withTopics(func(admin *kadm.Client) { f.createTopic(admin, f.changelog(), faultPartitions) })
	var rows []*kgo.Record
	for p := range int32(faultPartitions) {
		rows = append(rows, &kgo.Record{
			Topic: f.changelog(), Partition: p, Key: []byte("load-1"), Value: []byte(notARow),
		})
	}
	client := f.write(f.stranger(), time.Minute, rows...)
	require.NoError(f, client.EndTransaction(f.ctx, kgo.TryAbort))
	client.Close()
	f.ask()
	f.start("a").kill(f.T)
	f.start("a")
	f.answered(10)
}

// openOfPreviousOwner: the new owner of the partitions ends the transaction, long before its timeout.
func openOfPreviousOwner(f *field) {
	const timeout = 2 * time.Minute
	took := f.startBehindOpen(f.transactionalID("gone"), timeout)
	require.Less(f, took, timeout/2)
	f.figure("recovered after %s, transaction timeout %s", took, timeout)
}

// openOfOtherProducer: only the owner may end the transaction, so it ends at its timeout.
func openOfOtherProducer(f *field) {
	const timeout = 3 * time.Second
	took := f.startBehindOpen(f.stranger(), timeout)
	f.figure("recovered after %s, transaction timeout %s", took, timeout)
}

// startBehindOpen starts a process whose table ends in an open transaction, and returns how long it took to run.
func (f *field) startBehindOpen(id string, timeout time.Duration) time.Duration {
	f.Helper()
	i := f.start("a")
	f.ask()
	f.answered(5)
	require.NoError(f, i.Stop())
	client := f.write(id, timeout, f.lastRows(true)...)
	client.Close() // which does not end it
	began := time.Now()
	f.start("a")
	took := time.Since(began)
	f.answered(10)
	return round(took)
}

// refilledTable: the recreated topic has more records than the local store had read of the deleted one, so that offsets do
// not reveal the change.
func refilledTable(f *field) {
	i := f.start("a")
	f.ask()
	f.answered(20)
	f.load.Stop()
	require.NoError(f, f.load.Wait(f.ctx))
	require.NoError(f, i.Stop())
	var rows []*kgo.Record
	for p := range int32(faultPartitions) {
		for _, r := range f.readChangelog(p, kgo.ReadCommitted()) {
			rows = append(rows, &kgo.Record{Topic: r.Topic, Partition: p, Key: r.Key, Value: r.Value})
		}
	}
	f.withTopics(func(admin *kadm.Client) {
		f.deleteTopic(admin, f.changelog())
		f.createTopic(admin, f.changelog(), faultPartitions)
	})
	for n := range 3 { // the markers of the former one counted too
		id := wiretest.NamesOf(f.agent).Group + "-refill"
		client := f.write(id, time.Minute, again(rows)...)
		require.NoError(f, client.EndTransaction(f.ctx, kgo.TryCommit), n)
		client.Close()
	}
	f.launch("a", giveUp).refuses(f.T, f.changelog(), "deleted and recreated", f.dirs["a"])
	require.NoError(f, os.RemoveAll(f.dirs["a"]))
	f.start("a")
	f.figure("it stops: %q", "topic was deleted and recreated")
}

// again returns records to be sent again.
func again(records []*kgo.Record) []*kgo.Record {
	fresh := make([]*kgo.Record, len(records))
	for n, r := range records {
		fresh[n] = &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value}
	}
	return fresh
}
