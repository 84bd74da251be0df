package invoke

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// reads counts the records that a pipeline reads again, by topic. It sees those before the pipeline is ready, too.
type reads struct {
	follower
	during  func() // called once, after the first of: the committed offsets, the rows of a partition
	once    sync.Once
	mu      sync.Mutex
	records map[string]int
	bytes   int
}

// asked calls during.
func (r *reads) asked() {
	if r.during != nil {
		r.once.Do(r.during)
	}
}

func (r *reads) Committed(group string, list ...string) (processors.Offsets, error) {
	if len(list) > 1 { // not the loop topic
		defer r.asked()
	}
	return r.follower.Committed(group, list...)
}

func (r *reads) counting(topic string, take func(context.Context, processors.Inbound) bool,
) func(context.Context, processors.Inbound) bool {
	return func(ctx context.Context, in processors.Inbound) bool {
		r.mu.Lock()
		r.records[topic]++
		r.bytes += len(in.Value)
		r.mu.Unlock()
		return take(ctx, in)
	}
}

func (r *reads) ReplayFrom(ctx context.Context, topic string, partition int32, begin int64,
	take func(context.Context, processors.Inbound) bool,
) (int64, error) {
	if strings.HasSuffix(topic, "-table") {
		defer r.asked()
	}
	return r.follower.ReplayFrom(ctx, topic, partition, begin, r.counting(topic, take))
}

func (r *reads) ReplayRange(ctx context.Context, topic string, partition int32, begin, end int64,
	take func(context.Context, processors.Inbound) bool,
) (int64, error) {
	return r.follower.ReplayRange(ctx, topic, partition, begin, end, r.counting(topic, take))
}

func (r *reads) of(topic string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.records[topic]
}

// fromTable makes a pipeline read the table of turns.
func fromTable(c *PipelineConfig) { c.TurnTable = true }

// measured starts a pipeline, and returns it when it is ready, with what it has read.
func (b *broker) measured(change ...func(*PipelineConfig)) (*Pipeline, *reads) {
	return b.disturbed(nil, change...)
}

// disturbed is measured with a function that is called between the pipeline's steps.
func (b *broker) disturbed(during func(), change ...func(*PipelineConfig)) (*Pipeline, *reads) {
	b.t.Helper()
	p, err := NewPipeline("pilot", b.addrs, b.to, configOf(change))
	require.NoError(b.t, err)
	r := &reads{follower: p.follower, during: during, records: map[string]int{}}
	p.follower = r
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	b.t.Cleanup(func() {
		stop()
		require.NoError(b.t, <-ended)
	})
	<-p.Ready()
	return p, r
}

// tables are the guarantees of the group of the table, and how events are written beside it.
var tables = map[processors.Guarantee]func(b *broker, events ...topics.AgentEvent){
	processors.AtLeastOnce: guarantees["at least once"],
	processors.ExactlyOnce: guarantees["exactly once"],
}

// tableGroup is a running group of the table of turns.
type tableGroup struct {
	*processors.Processor
	stop func()
}

// turnTable runs the group of the table of turns.
func (b *broker) turnTable(guarantee processors.Guarantee, opts ...processors.Option) tableGroup {
	b.t.Helper()
	graph, err := TurnTable("pilot", TurnTableConfig{})
	require.NoError(b.t, err)
	catalog, err := topics.For("pilot", topics.WithEvents(), topics.WithTurns())
	require.NoError(b.t, err)
	p, err := processors.New(b.addrs, graph, append(opts, processors.WithTopics(catalog), processors.WithGuarantee(guarantee),
		processors.WithInstance("turns"), processors.WithTick(10*time.Millisecond))...)
	require.NoError(b.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ran; !errors.Is(err, processors.ErrKilled) {
			require.NoError(b.t, err)
		}
	})
	b.t.Cleanup(stop)
	return tableGroup{p, stop}
}

// awaitCovered waits until the group of the table has committed the ends of its topics, also of the loop topic.
func (b *broker) awaitCovered() {
	b.t.Helper()
	list := []string{
		b.catalog.AgentEvents.Name(), b.catalog.MessageInput.Name(), b.catalog.MessageOutput.Name(), "pilot-invoke-turns-loop",
	}
	f, err := processors.NewFollower(b.addrs, list[:3], func(processors.Inbound) {})
	require.NoError(b.t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	defer func() {
		stop()
		require.NoError(b.t, <-ended)
	}()
	<-f.Ready()
	require.Eventually(b.t, func() bool {
		committed, err := f.Committed(string(b.catalog.TurnsGroup()), list...)
		require.NoError(b.t, err)
		for _, topic := range list {
			for partition := range int32(3) {
				end, err := f.ReplayFrom(ctx, topic, partition, 1<<62, nil)
				if errors.Is(err, processors.ErrNoTopic) || errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
					return false // the group has not created its topics yet
				}
				require.NoError(b.t, err)
				if offset, ok := committed.Of(topic, partition); end > 0 && (!ok || offset < end) {
					return false
				}
			}
		}
		return true
	}, 2*time.Minute, 10*time.Millisecond)
}

// recreate deletes a topic and creates it again.
func (b *broker) recreate(topic string) {
	b.t.Helper()
	admin, err := sarama.NewClusterAdmin(b.addrs, kafka.Config())
	require.NoError(b.t, err)
	require.NoError(b.t, admin.DeleteTopic(topic))
	require.Eventually(b.t, func() bool {
		return admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 3, ReplicationFactor: 1}, false) == nil
	}, time.Minute, 10*time.Millisecond)
	require.NoError(b.t, admin.Close())
}

// askedFor is a request with a message and a key.
func askedFor(key string) Request {
	return Request{
		SessionID: "s-1", IdempotencyKey: key, Trace: Trace{TraceID: "t", SpanID: "u"},
		Data: topics.Raw(`{"inputs":{"messages":[{"role":"user","content":"x"}]}}`),
	}
}

// requireTurn reads a turn to its end.
func requireTurn(t testing.TB, s Stream, err error) {
	t.Helper()
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	for _, want := range scripted(t, hello).events {
		item, err := s.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, want.Type, item.Event.Type)
	}
}
