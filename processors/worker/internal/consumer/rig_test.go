package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors/worker/internal/consumer"
	"github.com/turntable-streams/turntable/processors/worker/internal/consumer/progress"
	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

const waitLimit = time.Minute

// field is a broker with a topic, and a client of another library.
type field struct {
	t      *testing.T
	addrs  []string
	topic  string
	group  string
	client *kgo.Client
	admin  *kadm.Client
}

func newField(t *testing.T, partitions int32) *field {
	t.Helper()
	t.Parallel()
	return newFieldAt(t, testbroker.Start(t), partitions)
}

func newFieldAt(t *testing.T, addrs []string, partitions int32) *field {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	name := strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
	f := &field{t: t, addrs: addrs, topic: "in-" + name, group: "workers-" + name, client: c, admin: kadm.NewClient(c)}
	_, err = f.admin.CreateTopics(t.Context(), partitions, 1, nil, f.topic)
	require.NoError(t, err)
	return f
}

// put writes n records to a partition, with values 0 to n-1.
func (f *field) put(partition int32, n int, key func(i int) []byte) {
	f.t.Helper()
	for i := range n {
		r := &kgo.Record{Topic: f.topic, Partition: partition, Key: key(i), Value: fmt.Append(nil, i)}
		require.NoError(f.t, f.client.ProduceSync(f.t.Context(), r).FirstErr())
	}
}

func keyless(int) []byte { return nil }

// committed returns the group's committed offset, or -1 if there is none.
func (f *field) committed(partition int32) int64 {
	offsets, err := f.admin.FetchOffsets(context.Background(), f.group)
	if o, ok := offsets.Lookup(f.topic, partition); ok && err == nil {
		return o.At
	}
	return -1
}

// commit commits an offset for the group, which must have no members.
func (f *field) commit(partition int32, offset int64, metadata string) error {
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: f.topic, Partition: partition, At: offset, LeaderEpoch: -1, Metadata: metadata})
	return f.admin.CommitAllOffsets(f.t.Context(), f.group, offsets)
}

// checkpoint returns the group's commit of a partition.
func (f *field) checkpoint(partition int32) progress.Checkpoint {
	offsets, err := f.admin.FetchOffsets(context.Background(), f.group)
	o, ok := offsets.Lookup(f.topic, partition)
	if !ok || err != nil {
		return progress.Checkpoint{}
	}
	c, _ := progress.Decode(o.At, o.Metadata)
	return c
}

// handler is a handler of a test. It returns an error for a record that is to be delivered again.
type handler func(ctx context.Context, d source.Delivery) error

// worker is a member under test, with short timeouts.
type worker struct {
	consumer.Config
	handle handler
	source *consumer.Source
	wires  *wires
}

// The scaled times: a rebalance waits at most this long for a member, and the broker removes a silent member after it.
const (
	rebalance = 4 * time.Second
	session   = 6 * time.Second // the shortest that a broker allows by default
)

func (f *field) worker(handle handler) *worker {
	w := &worker{handle: handle, wires: &wires{}}
	w.Config = consumer.Config{
		Config: source.Config{
			Brokers: f.addrs, Group: f.group, Topics: []string{f.topic}, Concurrency: 16,
			Clock: clock.System(), Logger: zap.NewNop(),
			Client: func() *sarama.Config {
				conf := kafka.Config()
				conf.Consumer.Group.Session.Timeout = session
				conf.Consumer.Group.Heartbeat.Interval = 100 * time.Millisecond
				conf.Consumer.Group.Rebalance.Timeout = rebalance
				conf.Net.Proxy.Enable = true
				conf.Net.Proxy.Dialer = w.wires
				return conf
			},
		},
		Handover: 30 * time.Second,
	}
	return w
}

// run starts a member; stop ends it and waits for it.
func (f *field) run(w *worker) (stop func()) {
	f.t.Helper()
	w.source = consumer.New(w.Config)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() {
		ran <- w.source.Run(ctx, func(ctx context.Context, d source.Delivery) source.Verdict {
			if w.handle(ctx, d) != nil {
				return source.Released
			}
			return source.Settled
		})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(f.t, <-ran)
	})
	f.t.Cleanup(stop)
	return stop
}

// owned returns the number of partitions that the member owns.
func (w *worker) owned() int {
	n := 0
	for _, partitions := range w.source.Status().Lag {
		n += len(partitions)
	}
	return n
}

// wires are a client's connections. A test cuts them to make its process dead for the broker.
type wires struct {
	mu     sync.Mutex
	down   bool
	conns  []net.Conn
	frozen chan struct{} // closed by thaw; nil if the connections work
}

var errCut = errors.New("the wire is cut")

func (w *wires) Dial(network, addr string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return nil, errCut
	}
	c, err := net.Dial(network, addr)
	if err != nil {
		return nil, err
	}
	w.conns = append(w.conns, c)
	return &wire{c, w}, nil
}

// wire is a connection. While it is frozen, it neither sends nor receives, as that of a suspended process.
type wire struct {
	net.Conn
	wires *wires
}

func (c *wire) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.wires.wait()
	return n, err
}

func (c *wire) Write(p []byte) (int, error) {
	c.wires.wait()
	return c.Conn.Write(p)
}

func (w *wires) wait() {
	w.mu.Lock()
	frozen := w.frozen
	w.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
}

// freeze keeps what the brokers send from the client, and the reverse, until thaw.
func (w *wires) freeze() (thaw func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frozen = make(chan struct{})
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		close(w.frozen)
		w.frozen = nil
	})
}

// cut closes the connections and refuses new ones.
func (w *wires) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = true
	for _, c := range w.conns {
		_ = c.Close()
	}
}

// mend allows connections again.
func (w *wires) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down, w.conns = false, nil
}

// book records which records were handled.
type book struct {
	mu   sync.Mutex
	seen map[string]int
	list []string
}

func (b *book) add(d source.Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen == nil {
		b.seen = map[string]int{}
	}
	name := fmt.Sprintf("%d/%s", d.Record.Partition, d.Record.Value)
	b.seen[name]++
	b.list = append(b.list, name)
}

func (b *book) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.seen)
}

// calls returns the number of calls.
func (b *book) calls() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.list)
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
