package capabilities

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// waitLimit is how long a test waits for what the groups do.
const waitLimit = 3 * time.Minute

// tick is how often an instance looks for deadlines.
const tick = 10 * time.Millisecond

// both runs a test under each guarantee.
func both(t *testing.T, test func(t *testing.T, guarantee processors.Guarantee)) {
	for _, g := range testbroker.Guarantees(t, processors.AtLeastOnce, processors.ExactlyOnce) {
		t.Run(string(g), func(t *testing.T) { test(t, g) })
	}
}

// options returns the options of an instance of a group.
func options(catalog topics.Catalog, guarantee processors.Guarantee, partitions int32, instance string) []processors.Option {
	return []processors.Option{
		processors.WithTopics(catalog), processors.WithPartitions(partitions), processors.WithInstance(instance),
		processors.WithGuarantee(guarantee), processors.WithTick(tick),
	}
}

// world is a broker and an agent of the test's own.
type world struct {
	tb         testing.TB
	guarantee  processors.Guarantee
	partitions int32
	brokers    []string
	agent      string
	topics     topics.Catalog
	mu         sync.Mutex // of what a test has read
}

func newWorld(tb testing.TB, guarantee processors.Guarantee, partitions int32, with ...topics.CatalogOption) *world {
	tb.Helper()
	w := &world{
		tb: tb, guarantee: guarantee, partitions: partitions, brokers: testbroker.Start(tb), agent: testbroker.Agent(),
	}
	var err error
	w.topics, err = topics.For(w.agent, with...)
	require.NoError(tb, err)
	return w
}

// publisher returns a publisher that is closed with the test.
func (w *world) publisher() *processors.KafkaPublisher {
	w.tb.Helper()
	to, err := processors.NewPublisher(w.brokers)
	require.NoError(w.tb, err)
	w.tb.Cleanup(func() { require.NoError(w.tb, to.Close()) })
	return to
}

// start runs a function until the test ends or stop is called.
func (w *world) start(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ran; !errors.Is(err, processors.ErrKilled) {
			require.NoError(w.tb, err)
		}
	})
	w.tb.Cleanup(stop)
	return stop
}

// instance is a running processor.
type instance struct {
	*processors.Processor
	stop func()
}

// crash ends it as a crash would.
func (i *instance) crash() {
	i.Processor.Kill()
	i.stop()
}

// group starts an instance of a group and waits until its state is Running.
func (w *world) group(graph *goka.GroupGraph, name string, more ...processors.Option) *instance {
	w.tb.Helper()
	p, err := processors.New(w.brokers, graph, append(options(w.topics, w.guarantee, w.partitions, name), more...)...)
	require.NoError(w.tb, err)
	stop := w.start(p.Run)
	require.Eventually(w.tb, func() bool { return p.Health().State == processors.Running }, waitLimit, 5*time.Millisecond,
		"%v", p.Health())
	return &instance{p, stop}
}

// read passes the committed records of topics until the test ends. The world's lock is held meanwhile.
func (w *world) read(take func(*kgo.Record), topics ...string) {
	w.tb.Helper()
	reader, err := kgo.NewClient(kgo.SeedBrokers(w.brokers...), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(20*time.Millisecond),
		kgo.MetadataMinAge(20*time.Millisecond)) // some topics do not exist yet
	require.NoError(w.tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			fetches := reader.PollFetches(ctx)
			w.mu.Lock()
			fetches.EachRecord(take)
			w.mu.Unlock()
		}
	}()
	w.tb.Cleanup(func() {
		cancel()
		<-done
		reader.Close()
	})
}

// header returns a header of a record, empty if it has none.
func header(r *kgo.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

// decode decodes the value of a record. An error fails the test.
func decode[T any](w *world, topic topics.Topic[T], r *kgo.Record) T {
	d := topic.Codec().Unmarshal(r.Value)
	if d.Err != nil {
		w.tb.Errorf("%s/%d, offset %d: %v", r.Topic, r.Partition, r.Offset, d.Err)
	}
	return d.Value
}
