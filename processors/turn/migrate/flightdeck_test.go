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
	return Import(ctx, f.brokers, f.catalog, turn.Config{}, f.options...)
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
	graph, err := turn.Graph(f.catalog.Agent, turn.Config{})
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

func hasHeader(r *kgo.Record) bool {
	for _, h := range r.Headers {
		if h.Key == HeaderImport {
			return true
		}
	}
	return false
}
