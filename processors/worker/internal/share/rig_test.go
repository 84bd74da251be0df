package share_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap/zaptest"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/processors/worker/internal/share"
	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

const (
	waitLimit = time.Minute
	// lock is short, so that a call can last for many of them.
	lock = time.Second
)

// field is a broker with a topic.
type field struct {
	t      *testing.T
	broker *embedded.Broker
	addrs  []string
	client *kgo.Client
	admin  *kadm.Client
}

func newField(t *testing.T, partitions int32) *field {
	t.Helper()
	t.Parallel() // each test has a broker of its own
	b, err := embedded.Start(embedded.Config{RecordLock: lock})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	f := &field{t, b, b.Addrs(), client, kadm.NewClient(client)}
	_, err = f.admin.CreateTopics(t.Context(), partitions, 1, nil, "in")
	require.NoError(t, err)
	return f
}

// set sets a broker setting.
func (f *field) set(name, value string) {
	f.t.Helper()
	resp, err := f.admin.AlterBrokerConfigs(f.t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}})
	require.NoError(f.t, err)
	for _, r := range resp {
		require.NoError(f.t, r.Err)
	}
}

// put writes records whose keys and values are names.
func (f *field) put(names ...string) {
	f.t.Helper()
	for _, name := range names {
		r := &kgo.Record{Topic: "in", Key: []byte(name), Value: []byte(name)}
		require.NoError(f.t, f.client.ProduceSync(f.t.Context(), r).FirstErr())
	}
}

func names(prefix string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(prefix, i))
	}
	return all
}

// start runs a worker of the group; stop stops it and waits for it.
func (f *field) start(slots int, handle source.Handle) (s *share.Source, stop func()) {
	f.t.Helper()
	return f.startWaiting(slots, 0, func() bool { return false }, handle)
}

// startWaiting runs a worker with places for records that wait.
func (f *field) startWaiting(
	slots, places int, crowded func() bool, handle source.Handle,
) (s *share.Source, stop func()) {
	f.t.Helper()
	s = share.New(share.Config{
		Config: source.Config{
			Brokers: f.addrs, Group: "workers", Topics: []string{"in"},
			Client:      func() *sarama.Config { return kafka.Config() },
			Concurrency: slots, Waiting: places, Crowded: crowded, Clock: clock.System(), Logger: zaptest.NewLogger(f.t),
		},
		Lock: lock,
	})
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx, handle) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(f.t, <-ran)
	})
	f.t.Cleanup(stop)
	return s, stop
}

func (f *field) eventually(condition func() bool, what ...any) {
	f.t.Helper()
	require.Eventually(f.t, condition, waitLimit, 5*time.Millisecond, what...)
}

// book counts the calls for each record.
type book struct {
	mu    sync.Mutex
	calls map[string]int
	last  map[string]source.Delivery
}

func (b *book) add(d source.Delivery) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calls == nil {
		b.calls, b.last = map[string]int{}, map[string]source.Delivery{}
	}
	name := string(d.Record.Value)
	b.calls[name]++
	b.last[name] = d
	return name
}

func (b *book) of(name string) (calls int, last source.Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls[name], b.last[name]
}

// once reports whether n records with the prefix were called, and none of them twice.
func (b *book) once(t *testing.T, prefix string, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := 0
	for name, calls := range b.calls {
		if strings.HasPrefix(name, prefix) {
			require.Equal(t, 1, calls, name)
			seen++
		}
	}
	return seen == n
}
