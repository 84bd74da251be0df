package migrate

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn"
)

const (
	wait  = time.Minute
	pause = 20 * time.Millisecond // between two requests of a test that waits
)

func TestImportedHistoryIsSentToTheModel(t *testing.T) {
	for _, guarantee := range testbroker.Guarantees(t, processors.AtLeastOnce, processors.ExactlyOnce) {
		t.Run(string(guarantee), func(t *testing.T) {
			t.Parallel()
			f := newFlightDeck(t, 2)
			long := strings.Replace(answered, "a2", strings.Repeat("long ", 20_000), 1) // a row with parts
			f.respond("s", camelCase, answered, openTurn)
			f.respond("long", long)
			f.respond("old", old(1, 0.5), old(2, 0.25))
			f.respond("ended", answered, "")
			f.respond("", answered)
			f.respond("bad", "no JSON", `[1]`)
			f.respond("s\x001", answered) // the key of a part of the row of s
			f.commit()
			f.respond("later", answered) // FlightDeck has not processed it
			result, err := f.run(t.Context())
			require.NoError(t, err)
			require.Equal(t, Result{Sessions: 3, Skipped: 4}, result)
			f.turnRuns(guarantee)
			has := func(session, history string, cost string) {
				step := f.enriched(session, "next")
				require.Contains(t, step, `"history":`+history)
				require.Contains(t, step, `"cost":`+cost)
			}
			has("s", history, "0.3")
			has("long", strings.Replace(history, "a2", strings.Repeat("long ", 20_000), 1), "0.2")
			has("old", oldHistory(1, 2), "0.75")
			has("ended", "[]", "null")
			has("later", "[]", "null")
		})
	}
}

func TestImportRunsOnce(t *testing.T) {
	t.Parallel()
	f := newFlightDeck(t, 2)
	f.respond("s", answered)
	f.commit()
	result, err := f.run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, result.Sessions)
	rows := f.size(f.catalog.Table())

	// Later starts skip it, also after the turn has written rows, and while it runs.
	f.turnRuns(processors.AtLeastOnce)
	require.Contains(t, f.enriched("s", "next"), history)
	result, err = f.run(t.Context())
	require.NoError(t, err)
	require.Equal(t, Result{Already: true}, result)
	for _, r := range f.latest(f.catalog.Table()) {
		require.False(t, r.Offset >= rows && hasHeader(r), "the import has written again")
	}
}

// The topic of the responses has deleted what is older than its retention; FlightDeck's store has the latest record of every
// session.
func TestImportTakesOldSessionsFromFlightDecksStore(t *testing.T) {
	t.Parallel()
	f := newFlightDeck(t, 2)
	store := func(session, value string) {
		r := &kgo.Record{Topic: f.catalog.FlightDeckStore(), Key: []byte(session)}
		if value != "" {
			r.Value = []byte(value)
		}
		require.NoError(t, f.client.ProduceSync(t.Context(), r).FirstErr())
	}
	f.respond("new", old(1, 0.5), answered)
	store("new", `{"session_id":"new"}`)
	f.respond("open", openTurn)
	store("open", answered)
	store("open", openTurn)
	store("old", answered)
	store("ended", answered)
	store("ended", "")
	f.commit()
	for _, step := range []string{"indexed", "committed rows", "written", ""} {
		ctx, cancel := context.WithCancel(t.Context())
		m, err := newMigration(f.brokers, f.catalog, f.options)
		require.NoError(t, err)
		m.reached = func(at string) {
			if at == step {
				cancel()
			}
		}
		_, err = m.run(ctx, turn.Config{}, f.options)
		cancel()
		if step == "" {
			require.NoError(t, err)
		}
	}
	rows := f.latest(f.catalog.Table())
	require.Len(t, rows, 3)
	for _, session := range []string{"new", "open", "old"} {
		s, err := turnrow.Table.Unmarshal(rows[session].Value)
		require.NoError(t, err)
		require.Equal(t, history, string(s.History), session)
	}
	f.turnRuns(processors.AtLeastOnce)
	require.Contains(t, f.enriched("old", "next"), `"history":`+history)
}

// Every step of an import is stopped once; the next start continues.
func TestImportContinuesAfterAStop(t *testing.T) {
	t.Parallel()
	f := newFlightDeck(t, 2)
	const sessions = transactionRecords + 200
	for i := range sessions {
		f.client.Produce(t.Context(), &kgo.Record{
			Topic: f.catalog.ThinkRequestResponse.Name(), Key: fmt.Appendf(nil, "s%d", i), Value: []byte(answered),
		}, nil)
	}
	require.NoError(t, f.client.Flush(t.Context()))
	f.commit()
	written := 0
	for _, step := range []string{"begun", "indexed", "committed rows", "written", ""} {
		ctx, cancel := context.WithCancel(t.Context())
		m, err := newMigration(f.brokers, f.catalog, f.options)
		require.NoError(t, err)
		reached := false
		m.reached = func(at string) {
			if at == step {
				reached = true
				cancel()
			}
		}
		result, err := m.run(ctx, turn.Config{}, f.options)
		cancel()
		written += result.Sessions
		if step != "" {
			require.True(t, reached, step)
			require.Error(t, err, step)
			continue
		}
		require.NoError(t, err)
		require.False(t, result.Already)
		require.Less(t, result.Sessions, sessions, "it has begun again")
	}
	rows := f.latest(f.catalog.Table())
	require.Len(t, rows, sessions)
	for key, r := range rows {
		s, err := turnrow.Table.Unmarshal(r.Value)
		require.NoError(t, err)
		require.Equal(t, history, string(s.History), key)
	}
	f.turnRuns(processors.ExactlyOnce)
	require.Contains(t, f.enriched("s7", "next"), history)
}

func TestOneOfSeveralProcessesImports(t *testing.T) {
	t.Parallel()
	f := newFlightDeck(t, 4)
	for i := range 50 {
		f.respond(fmt.Sprintf("s%d", i), answered)
	}
	f.commit()
	results := make(chan Result, 3)
	var all sync.WaitGroup
	for range cap(results) {
		all.Go(func() {
			result, err := f.run(t.Context())
			if err != nil {
				t.Error(err)
			}
			results <- result
		})
	}
	all.Wait()
	close(results)
	imported := 0
	for r := range results {
		if !r.Already {
			imported++
		}
	}
	require.Equal(t, 1, imported)
	require.Len(t, f.latest(f.catalog.Table()), 50)
}

func TestImportOfNothingIsComplete(t *testing.T) {
	t.Parallel()
	f := newFlightDeck(t, 2)
	result, err := f.run(t.Context())
	require.NoError(t, err)
	require.Zero(t, result)
	result, err = f.run(t.Context())
	require.NoError(t, err)
	require.True(t, result.Already)
}

// A kill leaves the transaction of the import open, with the progress in it. The next start does not wait for its timeout, which is a
// minute, but only until the group notices the kill.
func TestImportContinuesAtOnceAfterAKillInATransaction(t *testing.T) {
	t.Parallel()
	f := newFlightDeck(t, 2)
	for i := range 20 {
		f.respond(fmt.Sprintf("s%d", i), answered)
	}
	f.commit()
	f.killedInATransaction(map[int32]int64{0: 1, 1: 1})

	begun := time.Now()
	result, err := f.run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 20, result.Sessions)
	require.Less(t, time.Since(begun), 10*time.Second)
}

// killedInATransaction leaves offsets of the import pending, as a process that is killed between them and the end of their transaction.
func (f *flightDeck) killedInATransaction(offsets map[int32]int64) {
	f.Helper()
	group := f.catalog.HistoryImportGroup()
	begin := kmsg.NewPtrInitProducerIDRequest()
	begin.TransactionalID, begin.TransactionTimeoutMillis = &group, 60_000
	producer, err := begin.RequestWith(f.Context(), f.client)
	require.NoError(f, err)
	require.Zero(f, producer.ErrorCode)
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.Group, add.ProducerID, add.ProducerEpoch = group, group, producer.ProducerID, producer.ProducerEpoch
	added, err := add.RequestWith(f.Context(), f.client)
	require.NoError(f, err)
	require.Zero(f, added.ErrorCode)
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.Group, commit.ProducerID, commit.ProducerEpoch = group, group, producer.ProducerID, producer.ProducerEpoch
	commit.Generation = -1
	topic := kmsg.NewTxnOffsetCommitRequestTopic()
	topic.Topic = f.catalog.ThinkRequestResponse.Name()
	known, err := f.admin.ListTopics(f.Context(), topic.Topic)
	require.NoError(f, err)
	topic.TopicID = known[topic.Topic].ID
	for partition, offset := range offsets {
		at := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		at.Partition, at.Offset = partition, offset
		topic.Partitions = append(topic.Partitions, at)
	}
	commit.Topics = append(commit.Topics, topic)
	committed, err := commit.RequestWith(f.Context(), f.client)
	require.NoError(f, err)
	for _, at := range committed.Topics[0].Partitions {
		require.Zero(f, at.ErrorCode)
	}
}
