package consume_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/consume"
	"github.com/turntable-streams/turntable/internal/embedded"
)

const (
	waitLimit = time.Minute
	group     = "workers"
)

// field is a broker with a topic, and a client of another library.
type field struct {
	t      *testing.T
	addrs  []string
	client *kgo.Client
	admin  *kadm.Client
}

func newField(t *testing.T, partitions int32) *field {
	t.Helper()
	t.Parallel() // each test has a broker of its own
	b, err := embedded.Start()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	c, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	f := &field{t, b.Addrs(), c, kadm.NewClient(c)}
	_, err = f.admin.CreateTopics(t.Context(), partitions, 1, nil, "in")
	require.NoError(t, err)
	return f
}

// put writes n records to a partition, with values 0 to n-1.
func (f *field) put(partition int32, n int, key func(i int) []byte) {
	f.t.Helper()
	for i := range n {
		r := &kgo.Record{Topic: "in", Partition: partition, Key: key(i), Value: fmt.Append(nil, i)}
		require.NoError(f.t, f.client.ProduceSync(f.t.Context(), r).FirstErr())
	}
}

func keyless(int) []byte { return nil }

// committed returns the group's committed offset, or -1 if there is none.
func (f *field) committed(partition int32) int64 {
	offsets, err := f.admin.FetchOffsets(context.Background(), group)
	if o, ok := offsets.Lookup("in", partition); ok && err == nil {
		return o.At
	}
	return -1
}

func (f *field) config(handle func(context.Context, *sarama.ConsumerMessage) error) consume.Config {
	return consume.Config{
		Brokers: f.addrs, Group: group, Topics: []string{"in"}, Handle: handle,
		CommitEvery: 20 * time.Millisecond, Logger: zap.NewNop(),
	}
}

// run starts a member; stop ends it and waits for it.
func (f *field) run(c consume.Config) (stop func()) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- consume.Run(ctx, c) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(f.t, <-ran)
	})
	f.t.Cleanup(stop)
	return stop
}

// book records which records were handled.
type book struct {
	mu   sync.Mutex
	seen map[string]int
	list []string
}

func (b *book) add(r *sarama.ConsumerMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen == nil {
		b.seen = map[string]int{}
	}
	name := fmt.Sprintf("%d/%s", r.Partition, r.Value)
	b.seen[name]++
	b.list = append(b.list, name)
}

func (b *book) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.seen)
}

func (b *book) times(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen[name]
}

func (f *field) eventually(condition func() bool, what ...any) {
	f.t.Helper()
	require.Eventually(f.t, condition, waitLimit, 5*time.Millisecond, what...)
}

var errTool = errors.New("the tool is broken")
