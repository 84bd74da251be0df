package whole

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// rig is a group of its own on a broker, with one input, one output and a table of texts.
type rig struct {
	t          *testing.T
	guarantee  processors.Guarantee
	brokers    []string
	group      string
	partitions int32
	client     *kgo.Client
	in, out    topics.Topic[string]
	deadline   func(*processors.Context) error // nil: rows have no deadlines
	offsets    map[int32]int64                 // next offset of the input's partitions
}

func newRig(t *testing.T, guarantee processors.Guarantee, partitions int32) *rig {
	t.Helper()
	group := testbroker.AgentOf(t)
	r := &rig{
		t: t, guarantee: guarantee, brokers: testbroker.Start(t), group: group, partitions: partitions,
		in:      topics.New(topics.Spec{Name: group + "-in"}, codec.String()),
		out:     topics.New(topics.Spec{Name: group + "-out"}, codec.String()),
		offsets: map[int32]int64{},
	}
	var err error
	r.client, err = kgo.NewClient(kgo.SeedBrokers(r.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(r.client.Close)
	_, err = kadm.NewClient(r.client).CreateTopics(t.Context(), partitions, 1, nil, r.in.Name(), r.out.Name())
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		found, err := kadm.NewClient(r.client).ListTopics(t.Context(), r.in.Name(), r.out.Name())
		return err == nil && found.Error() == nil
	}, waitLimit, 10*time.Millisecond)
	return r
}

// key returns a key of a partition.
func (r *rig) key(partition int32) string {
	for n := 0; ; n++ {
		if k := "k" + strings.Repeat("x", n); codec.PartitionOf(k, r.partitions) == partition {
			return k
		}
	}
}

// put writes texts to a partition and returns the offset of the first one.
func (r *rig) put(partition int32, texts ...string) int64 {
	r.t.Helper()
	for _, text := range texts {
		record := &kgo.Record{Topic: r.in.Name(), Partition: partition, Key: []byte(r.key(partition)), Value: []byte(text)}
		require.NoError(r.t, r.client.ProduceSync(r.t.Context(), record).FirstErr())
	}
	first := r.offsets[partition]
	r.offsets[partition] += int64(len(texts))
	return first
}

// take reads want committed records of a topic from its start. It fails the test if there are more.
func (r *rig) take(topic string, want int) []*kgo.Record {
	r.t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(r.brokers...), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(50*time.Millisecond))
	require.NoError(r.t, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(r.t.Context(), waitLimit)
	defer cancel()
	var got []*kgo.Record
	for len(got) < want && ctx.Err() == nil {
		got = append(got, c.PollFetches(ctx).Records()...)
	}
	require.Len(r.t, got, want, topic)
	return got
}

// outputs returns the texts of want outputs, sorted, of one partition each in order.
func (r *rig) outputs(want int) []string {
	r.t.Helper()
	var texts []string
	for _, record := range r.take(r.out.Name(), want) {
		texts = append(texts, string(record.Value))
	}
	slices.Sort(texts)
	return texts
}

// letters returns want dead letters as "value: reason", sorted.
func (r *rig) letters(want int) []string {
	r.t.Helper()
	var texts []string
	for _, record := range r.take(r.group+"-dlq", want) {
		texts = append(texts, string(record.Value)+": "+headerOf(record, topics.HeaderErrorReason))
	}
	slices.Sort(texts)
	return texts
}

// committed returns the group's committed offset of a partition of the input, and its metadata.
func (r *rig) committed(partition int32) (int64, string) {
	r.t.Helper()
	all, err := kadm.NewClient(r.client).FetchOffsets(r.t.Context(), r.group)
	require.NoError(r.t, err)
	o, ok := all.Lookup(r.in.Name(), partition)
	if !ok {
		return -1, ""
	}
	return o.At, o.Metadata
}

func (r *rig) eventuallyCommitted(partition int32, offset int64) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		at, _ := r.committed(partition)
		return at == offset
	}, waitLimit, 10*time.Millisecond)
}

// rows is the table's codec: a text, or eight bytes that are a deadline in milliseconds.
type rows struct {
	fire func(*processors.Context) error
}

func (rows) Encode(v any) ([]byte, error) { return v.([]byte), nil }
func (rows) Decode(b []byte) (any, error) { return b, nil }

func (w rows) Deadline(row []byte) (int64, bool) {
	if w.fire == nil || len(row) != 8 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(row)), true
}

func (w rows) OnDeadline(ctx goka.Context, _ processors.Due) { processors.OnDeadline(ctx, w.fire) }

func (r *rig) graph(h processors.Handler[string]) *goka.GroupGraph {
	edges := processors.Edges(goka.Group(r.group), processors.Input(r.in, h))
	return goka.DefineGroup(goka.Group(r.group),
		append(edges, goka.Output(r.out.Stream(), r.out.Codec()), goka.Persist(rows{r.deadline}))...)
}

// member is a running processor.
type member struct {
	*processors.Processor
	stop    func() error
	result  <-chan error
	retries chan int // the number of failed attempts of each retry
	mu      sync.Mutex
	causes  []error // of restarts
}

func (m *member) restarts() []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.causes)
}

// run starts a processor, named instance, and waits until it runs. It is stopped with the test. A processor that fails
// before it runs, for example because a broker does not know the new topics yet, is replaced: waits may be long.
func (r *rig) run(instance string, h processors.Handler[string], opts ...processors.Option) *member {
	r.t.Helper()
	var m *member
	require.Eventually(r.t, func() bool {
		if m != nil && len(m.restarts()) > 0 {
			_ = m.stop()
			m = nil
		}
		if m == nil {
			m = r.start(instance, h, opts...)
		}
		return m.Health().State == processors.Running
	}, waitLimit, 5*time.Millisecond)
	return m
}

func (r *rig) start(instance string, h processors.Handler[string], opts ...processors.Option) *member {
	r.t.Helper()
	m := &member{retries: make(chan int, 1000)}
	opts = append([]processors.Option{
		processors.WithGuarantee(r.guarantee), processors.WithInstance(instance), processors.WithTick(5 * time.Millisecond),
		processors.WithMetrics(processors.Metrics{
			Retry: func(_ error, attempts int, _ time.Duration) { m.retries <- attempts },
			Restart: func(err error, _ time.Duration) {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.causes = append(m.causes, err)
			},
		}),
	}, opts...)
	p, err := processors.New(r.brokers, r.graph(h), opts...)
	require.NoError(r.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() {
		defer close(result)
		result <- p.Run(ctx)
	}()
	m.Processor, m.result = p, result
	m.stop = sync.OnceValue(func() error {
		cancel()
		return <-result
	})
	r.t.Cleanup(func() { _ = m.stop() })
	return m
}
