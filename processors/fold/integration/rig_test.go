package integration

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/fold/group"
	"github.com/turntable-streams/turntable/topics"
)

const waitLimit = 90 * time.Second

// both runs a test under each guarantee.
func both(t *testing.T, test func(t *testing.T, guarantee processors.Guarantee)) {
	for _, g := range []processors.Guarantee{processors.AtLeastOnce, processors.ExactlyOnce} {
		t.Run(string(g), func(t *testing.T) { test(t, g) })
	}
}

// rig is a broker, the group on it, a producer of events and a reader of batches.
type rig struct {
	tb         testing.TB
	guarantee  processors.Guarantee
	brokers    []string
	agent      string
	partitions int32
	topics     topics.Catalog
	opts       []group.Option
	producer   *kgo.Client

	mu      sync.Mutex
	batches map[string][]topics.BatchMessage // by turntable.id
	letters int
}

func newRig(tb testing.TB, guarantee processors.Guarantee, partitions int32, opts ...group.Option) *rig {
	tb.Helper()
	r := &rig{
		tb: tb, guarantee: guarantee, brokers: testbroker.Start(tb), agent: testbroker.Agent(), partitions: partitions,
		opts: opts, batches: map[string][]topics.BatchMessage{},
	}
	var err error
	r.topics, err = topics.For(r.agent, topics.WithEvents())
	require.NoError(tb, err)
	// Partition like Java's producers.
	r.producer, err = kgo.NewClient(kgo.SeedBrokers(r.brokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(time.Millisecond))
	require.NoError(tb, err)
	tb.Cleanup(r.producer.Close)
	return r
}

// instance is a running processor of the group.
type instance struct {
	*processors.Processor
	stop func()
}

// run starts the group and waits until it works.
func (r *rig) run() *instance {
	r.tb.Helper()
	g := r.start()
	require.Eventually(r.tb, func() bool { return g.Health().State == processors.Running }, waitLimit, 5*time.Millisecond)
	return g
}

func (r *rig) start() *instance {
	r.tb.Helper()
	g, err := group.Graph(r.agent, r.opts...)
	require.NoError(r.tb, err)
	p, err := processors.New(r.brokers, g, processors.WithTopics(r.topics), processors.WithPartitions(r.partitions),
		processors.WithInstance("fold"), processors.WithGuarantee(r.guarantee), processors.WithTick(10*time.Millisecond))
	require.NoError(r.tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ran; !errors.Is(err, processors.ErrKilled) {
			require.NoError(r.tb, err)
		}
	})
	r.tb.Cleanup(stop)
	return &instance{p, stop}
}

// send writes records of a session in order, and returns before they are acknowledged.
func (r *rig) send(events ...topics.AgentEvent) {
	r.tb.Helper()
	for _, e := range events {
		raw, err := r.topics.AgentEvents.Codec().Marshal(e)
		require.NoError(r.tb, err)
		r.producer.Produce(context.Background(), &kgo.Record{
			Topic: r.topics.AgentEvents.Name(), Key: []byte(e.SessionID), Value: raw,
			Partition: codec.PartitionOf(e.SessionID, r.partitions),
		}, func(_ *kgo.Record, err error) {
			if err != nil && !errors.Is(err, kgo.ErrClientClosed) {
				r.tb.Errorf("produce: %v", err)
			}
		})
	}
}

// watch reads committed batches, and dead letters.
func (r *rig) watch() {
	r.tb.Helper()
	reader, err := kgo.NewClient(kgo.SeedBrokers(r.brokers...), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeTopics(r.topics.BatchMessages.Name(), string(r.topics.FoldGroup())+"-dlq"),
		kgo.FetchMaxWait(20*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(r.tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			r.read(reader.PollFetches(ctx))
		}
	}()
	r.tb.Cleanup(func() {
		cancel()
		<-done
		reader.Close()
	})
}

func (r *rig) read(fetches kgo.Fetches) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fetches.EachRecord(func(record *kgo.Record) {
		if record.Topic != r.topics.BatchMessages.Name() {
			r.letters++
			return
		}
		d := r.topics.BatchMessages.Codec().Unmarshal(record.Value)
		if d.Err != nil || string(record.Key) != d.Value.SessionID {
			r.tb.Errorf("batch of %s: %v", record.Key, d.Err)
			return
		}
		for _, h := range record.Headers {
			if h.Key == topics.HeaderID {
				r.batches[string(h.Value)] = append(r.batches[string(h.Value)], d.Value)
			}
		}
	})
}

func (r *rig) closed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.batches)
}

func (r *rig) await(turns int) {
	r.tb.Helper()
	require.Eventually(r.tb, func() bool { return r.closed() >= turns }, waitLimit, 5*time.Millisecond)
}

// turnOf returns a turn of n records: text, calls and results, and its terminal record.
func turnOf(session, turn string, records int) (events []topics.AgentEvent) {
	add := func(event string) {
		events = append(events, topics.AgentEvent{
			SessionID: session, TurnID: turn, Attempt: 1, Seq: int64(len(events) + 1), Event: topics.Raw(event),
		})
	}
	for block := 0; len(events) < records-1; block++ {
		id := "msg-" + strconv.Itoa(block)
		add(`{"type":"message_start","data":{"id":"` + id + `"}}`)
		for i := 0; i < 40 && len(events) < records-4; i++ {
			add(`{"type":"message_delta","data":{"id":"` + id + `","delta":"` + turn + ` says ` + strconv.Itoa(i) + `. "}}`)
		}
		for _, event := range []string{
			`{"type":"message_end","data":{"id":"` + id + `"}}`,
			`{"type":"tool_call","data":{"id":"` + id + `","name":"look","input":{"n":1.50}}}`,
			`{"type":"tool_result","id":"` + id + `","output":"` + turn + `"}`,
		} {
			if len(events) < records-1 {
				add(event)
			}
		}
	}
	reason := "end_turn"
	return append(events, topics.AgentEvent{
		SessionID: session, TurnID: turn, Attempt: 1, Seq: int64(len(events) + 1),
		Result: &topics.AgentResult{OK: true, StopReason: &reason},
	})
}

// folded returns package fold's batch of a turn's events: its first three fields.
func folded(tb testing.TB, events []topics.AgentEvent) string {
	tb.Helper()
	f := fold.NewFolder()
	for _, e := range events {
		if e.Result != nil {
			continue
		}
		event, err := fold.DecodeEvent([]byte(e.Event))
		require.NoError(tb, err)
		require.NoError(tb, f.Add(event))
	}
	b, err := f.Batch(fold.End{StopReason: []byte(`"end_turn"`)})
	require.NoError(tb, err)
	return string(b.AppendJSON(nil))
}

func threeFields(b topics.BatchMessage) string {
	return `{"messages":` + b.Messages.String() + `,"stop_reason":` + b.StopReason.String() +
		`,"pending_interaction":` + b.PendingInteraction.String() + `}`
}
