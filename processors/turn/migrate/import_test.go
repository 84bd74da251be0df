package migrate

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

const (
	wait  = time.Minute
	pause = 20 * time.Millisecond // between two requests of a test that waits
)

// flightDeck is what FlightDeck leaves on a broker.
type flightDeck struct {
	*testing.T
	brokers []string
	catalog topics.Catalog
	client  *kgo.Client
	admin   *kadm.Client
	options []processors.Option
}

func newFlightDeck(t *testing.T, partitions int32) *flightDeck {
	t.Helper()
	f := &flightDeck{T: t, brokers: testbroker.Start(t)}
	var err error
	f.catalog, err = topics.For(testbroker.Agent())
	require.NoError(t, err)
	f.client, err = kgo.NewClient(kgo.SeedBrokers(f.brokers...))
	require.NoError(t, err)
	t.Cleanup(f.client.Close)
	f.admin = kadm.NewClient(f.client)
	names := []string{f.catalog.ThinkRequestResponse.Name(), f.catalog.MessageInput.Name(), f.catalog.FlightDeckStore()}
	created, err := f.admin.CreateTopics(t.Context(), partitions, 1, nil, names...)
	require.NoError(t, err)
	require.NoError(t, created.Error())
	for _, name := range names {
		f.awaitPartitions(name, int(partitions))
	}
	f.options = []processors.Option{
		processors.WithTopics(f.catalog), processors.WithStorage(processors.Memory()),
		processors.WithLogger(zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel))),
	}
	return f
}

// awaitPartitions waits until all brokers know that a topic was created or deleted.
func (f *flightDeck) awaitPartitions(topic string, n int) {
	f.Helper()
	seen := 0
	require.Eventually(f, func() bool {
		details, err := f.admin.ListTopics(f.Context(), topic)
		if err != nil || len(details[topic].Partitions) != n || details[topic].Err != nil && n > 0 {
			seen = 0
			return false
		}
		_, err = f.admin.ListEndOffsets(f.Context(), topic)
		if n > 0 && err != nil {
			return false
		}
		seen++
		return seen == 3 // several requests, which may go to several brokers
	}, wait, 20*time.Millisecond)
}

// delete deletes a topic.
func (f *flightDeck) delete(topic string) {
	f.Helper()
	deleted, err := f.admin.DeleteTopics(f.Context(), topic)
	require.NoError(f, err)
	require.NoError(f, deleted.Error())
	f.awaitPartitions(topic, 0)
}

// respond writes records of think-request-response; an empty value is a tombstone.
func (f *flightDeck) respond(session string, values ...string) {
	f.Helper()
	for _, v := range values {
		r := &kgo.Record{Topic: f.catalog.ThinkRequestResponse.Name(), Key: []byte(session)}
		if session == "" {
			r.Key = nil
		}
		if v != "" {
			r.Value = []byte(v)
		}
		require.NoError(f, f.client.ProduceSync(f.Context(), r).FirstErr())
	}
}

// commit commits the ends of the topic in the group that both applications have.
func (f *flightDeck) commit() {
	f.Helper()
	ends, err := f.admin.ListEndOffsets(f.Context(), f.catalog.ThinkRequestResponse.Name())
	require.NoError(f, err)
	require.NoError(f, f.admin.CommitAllOffsets(f.Context(), string(f.catalog.Group()), ends.Offsets()))
}

func (f *flightDeck) run(ctx context.Context) (Result, error) {
	return Import(ctx, f.brokers, f.catalog, nil, f.options...)
}

// size returns the number of records and markers of a topic.
func (f *flightDeck) size(topic string) (n int64) {
	f.Helper()
	ends, err := f.admin.ListEndOffsets(f.Context(), topic)
	require.NoError(f, err)
	ends.Each(func(o kadm.ListedOffset) { n += o.Offset })
	return n
}

// latest returns the latest committed record of each key of a topic.
func (f *flightDeck) latest(topic string) map[string]*kgo.Record {
	f.Helper()
	reader, err := kgo.NewClient(kgo.SeedBrokers(f.brokers...), kgo.ConsumeTopics(topic),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	require.NoError(f, err)
	defer reader.Close()
	all := map[string]*kgo.Record{}
	ends, err := f.admin.ListEndOffsets(f.Context(), topic)
	require.NoError(f, err)
	missing := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			missing[o.Partition] = o.Offset
		}
	})
	for len(missing) > 0 {
		fetches := reader.PollFetches(f.Context())
		require.NoError(f, f.Context().Err())
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				all[string(r.Key)] = r
			}
			if r.Offset+1 >= missing[r.Partition] {
				delete(missing, r.Partition)
			}
		})
	}
	return all
}

// turnRuns starts the turn's group until the test ends.
func (f *flightDeck) turnRuns(guarantee processors.Guarantee) (stop func()) {
	f.Helper()
	graph, err := turn.Graph(f.catalog.Agent)
	require.NoError(f, err)
	p, err := processors.New(f.brokers, graph, append([]processors.Option{
		processors.WithGuarantee(guarantee), processors.WithInstance(f.catalog.Agent + "-1"),
	}, f.options...)...)
	require.NoError(f, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.Context()))
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(f, <-done)
	})
	f.Cleanup(stop)
	require.Eventually(f, func() bool { return p.Health().State == processors.Running }, wait, 10*time.Millisecond)
	return stop
}

// enriched sends a message and returns what the model is sent.
func (f *flightDeck) enriched(session, text string) string {
	f.Helper()
	reader, err := kgo.NewClient(kgo.SeedBrokers(f.brokers...), kgo.ConsumeTopics(f.catalog.EnrichedMessageInput.Name()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	require.NoError(f, err)
	defer reader.Close()
	value := fmt.Sprintf(`{"session_id":%q,"role":"user","content":%q}`, session, text)
	require.NoError(f, f.client.ProduceSync(f.Context(), &kgo.Record{
		Topic: f.catalog.MessageInput.Name(), Key: []byte(session), Value: []byte(value),
	}).FirstErr())
	ctx, cancel := context.WithTimeout(f.Context(), wait)
	defer cancel()
	for {
		fetches := reader.PollFetches(ctx)
		require.NoError(f, ctx.Err(), "no step for the model")
		for _, r := range fetches.Records() {
			if string(r.Key) == session && strings.Contains(string(r.Value), text) {
				return string(r.Value)
			}
		}
	}
}

func TestImportedHistoryIsSentToTheModel(t *testing.T) {
	for _, guarantee := range []processors.Guarantee{processors.AtLeastOnce, processors.ExactlyOnce} {
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

func hasHeader(r *kgo.Record) bool {
	for _, h := range r.Headers {
		if h.Key == HeaderImport {
			return true
		}
	}
	return false
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
		_, err = m.run(ctx, nil, f.options)
		cancel()
		if step == "" {
			require.NoError(t, err)
		}
	}
	rows := f.latest(f.catalog.Table())
	require.Len(t, rows, 3)
	for _, session := range []string{"new", "open", "old"} {
		s, err := turn.DecodeState(rows[session].Value)
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
		result, err := m.run(ctx, nil, f.options)
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
		s, err := turn.DecodeState(r.Value)
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

func TestImportIsRefusedWhileTheGroupHasMembers(t *testing.T) {
	t.Parallel()
	f := newFlightDeck(t, 2)
	f.respond("s", answered)
	f.commit()
	member, err := kgo.NewClient(kgo.SeedBrokers(f.brokers...), kgo.ConsumerGroup(string(f.catalog.Group())),
		kgo.ConsumeTopics(f.catalog.MessageInput.Name()), kgo.DisableAutoCommit())
	require.NoError(t, err)
	defer member.Close()
	go member.PollFetches(t.Context())
	require.Eventually(t, func() bool {
		groups, err := f.admin.DescribeGroups(t.Context(), string(f.catalog.Group()))
		return err == nil && len(groups[string(f.catalog.Group())].Members) == 1
	}, wait, 10*time.Millisecond)
	_, err = f.run(t.Context())
	require.ErrorIs(t, err, ErrActive)
	require.ErrorContains(t, err, string(f.catalog.Group())+" has 1; stop FlightDeck's")
	_, err = Export(t.Context(), f.brokers, f.catalog, f.options...)
	require.ErrorIs(t, err, ErrActive)
	require.Zero(t, f.size(f.catalog.Table()))
	require.Zero(t, f.size(f.catalog.FlightDeckStore()))

	require.NoError(t, member.LeaveGroupContext(t.Context()))
	result, err := f.run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, result.Sessions)
}

func TestImportIsRefusedIfTheTableHasRows(t *testing.T) {
	t.Parallel()
	f := newFlightDeck(t, 1)
	stop := f.turnRuns(processors.AtLeastOnce)
	require.Contains(t, f.enriched("s", "first"), `"history":[]`)
	stop()
	f.commit()
	before := f.size(f.catalog.Table())
	_, err := f.run(t.Context())
	require.ErrorIs(t, err, ErrRows)
	require.Equal(t, before, f.size(f.catalog.Table()))
}

func TestImportIsRefusedIfOffsetsDoNotFit(t *testing.T) {
	t.Parallel()
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		f := newFlightDeck(t, 2)
		f.respond("s", answered)
		_, err := f.run(t.Context())
		require.ErrorIs(t, err, ErrOffsets)
		require.ErrorContains(t, err, "has committed none")
	})
	t.Run("after the end", func(t *testing.T) {
		t.Parallel()
		f := newFlightDeck(t, 1)
		offsets := kadm.Offsets{}
		offsets.AddOffset(f.catalog.ThinkRequestResponse.Name(), 0, 7, -1)
		require.NoError(t, f.admin.CommitAllOffsets(t.Context(), string(f.catalog.Group()), offsets))
		_, err := f.run(t.Context())
		require.ErrorIs(t, err, ErrOffsets)
	})
	t.Run("moved meanwhile", func(t *testing.T) {
		t.Parallel()
		f := newFlightDeck(t, 1)
		f.respond("s", answered)
		f.commit()
		m, err := newMigration(f.brokers, f.catalog, f.options)
		require.NoError(t, err)
		m.reached = func(step string) {
			if step == "written" { // FlightDeck has run
				f.respond("s", answered)
				f.commit()
			}
		}
		_, err = m.run(t.Context(), nil, f.options)
		require.ErrorIs(t, err, ErrOffsets)
		m, err = newMigration(f.brokers, f.catalog, f.options)
		require.NoError(t, err)
		m.reached = func(step string) { t.Errorf("the next start has %s", step) }
		_, err = m.run(t.Context(), nil, f.options)
		require.ErrorIs(t, err, ErrOffsets)
	})
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

func TestImportIsRefusedIfPartitionsDiffer(t *testing.T) {
	t.Parallel()
	f := newFlightDeck(t, 2)
	_, err := f.admin.CreateTopic(t.Context(), 3, 1, nil, f.catalog.Table())
	require.NoError(t, err)
	f.awaitPartitions(f.catalog.Table(), 3)
	_, err = f.run(t.Context())
	require.ErrorIs(t, err, topics.ErrCoPartitioning)
	require.ErrorContains(t, err, f.catalog.Table())
}
