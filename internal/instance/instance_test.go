package instance_test

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/instance"
	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
)

// waiting is how many tests run in parallel unless the command line says otherwise: they mostly wait.
const waiting = "8"

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", waiting); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(testbroker.Main(m), leaktest.Libraries()...)
}

// cluster starts an embedded broker with topics of two partitions.
func cluster(t testing.TB, topics ...string) (*kfake.Cluster, []string) {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, topics...))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c, c.ListenAddrs()
}

func count(v any) int {
	if v == nil {
		return 0
	}
	n, _ := strconv.Atoi(v.(codec.Decoded[string]).Value)
	return n
}

// counting is a group that counts the records of a key and tells of each.
func counting(group string) *goka.GroupGraph { return countingBetween(group, "in", "out") }

// countingOf is counting of a group that has its topics to itself.
func countingOf(name string) *goka.GroupGraph {
	return countingBetween(name, goka.Stream(name+"-in"), goka.Stream(name+"-out"))
}

func countingBetween(group string, in, out goka.Stream) *goka.GroupGraph {
	return goka.DefineGroup(goka.Group(group),
		goka.Input(in, codec.String(), func(ctx goka.Context, _ any) { emitCount(ctx, out) }),
		goka.Output(out, codec.String()),
		goka.Persist(codec.String()))
}

func emitCount(ctx goka.Context, out goka.Stream) {
	n := strconv.Itoa(count(ctx.Value()) + 1)
	ctx.Emit(out, ctx.Key(), n)
	ctx.SetValue(n)
}

type running struct {
	*instance.Instance
	stop      func()
	done      chan error
	recovered func() bool
}

func run(t testing.TB, cfg instance.Config) *running {
	t.Helper()
	if cfg.Sarama == nil {
		cfg.Sarama = kafka.Config
	}
	if cfg.Logger == nil {
		cfg.Logger = zaptest.NewLogger(t)
	}
	inst, err := instance.New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{Instance: inst, stop: cancel, done: make(chan error, 1)}
	r.recovered = func() bool { return inst.Health().State == instance.Running }
	go func() { r.done <- inst.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case <-r.done:
		case <-time.After(testTimeout):
			t.Error("the instance does not stop")
		}
	})
	return r
}

func (r *running) wait(t testing.TB) error {
	t.Helper()
	select {
	case err := <-r.done:
		r.done <- err
		return err
	case <-time.After(testTimeout):
		t.Fatal("the instance does not end")
		return nil
	}
}

func (r *running) ready(t testing.TB) {
	t.Helper()
	require.Eventually(t, r.recovered, testTimeout, 5*time.Millisecond)
}

func produce(t testing.TB, brokers []string, topic string, n, keys int) {
	t.Helper()
	p, err := sarama.NewSyncProducer(brokers, kafka.Config())
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	for i := range n {
		_, _, err := p.SendMessage(&sarama.ProducerMessage{
			Topic: topic, Key: sarama.StringEncoder(fmt.Sprintf("k%d", i%keys)), Value: sarama.StringEncoder("x"),
		})
		require.NoError(t, err)
	}
}

// read returns the records of a topic, waiting until there are want.
func read(t testing.TB, brokers []string, topic string, want int) []*sarama.ConsumerMessage {
	t.Helper()
	c, err := sarama.NewConsumer(brokers, kafka.Config())
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	partitions, err := c.Partitions(topic)
	require.NoError(t, err)
	all := make(chan *sarama.ConsumerMessage)
	stop := make(chan struct{})
	for _, p := range partitions {
		pc, err := c.ConsumePartition(topic, p, sarama.OffsetOldest)
		require.NoError(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for m := range pc.Messages() {
				select {
				case all <- m:
				case <-stop:
				}
			}
		}()
		go func() {
			for range pc.Errors() { //nolint:revive // drained
			}
		}()
		defer func() { pc.AsyncClose(); <-done }()
	}
	defer close(stop)
	limit := time.After(testTimeout)
	var got []*sarama.ConsumerMessage
	for len(got) < want {
		select {
		case m := <-all:
			got = append(got, m)
		case <-limit:
			t.Fatalf("%s: %d of %d records", topic, len(got), want)
		}
	}
	return got
}

func TestInstanceCountsEveryRecord(t *testing.T) {
	t.Parallel()
	_, brokers := cluster(t, "in", "out")
	produce(t, brokers, "in", 200, 7)
	for round, dir := range []string{"", t.TempDir()} {
		inst := run(t, instance.Config{Brokers: brokers, Graph: counting(fmt.Sprintf("g%d", round)), StorageDir: dir, InstanceID: "i1"})
		got := read(t, brokers, "out", 200*(round+1))
		require.Len(t, got, 200*(round+1))
		inst.stop()
		require.NoError(t, inst.wait(t))
	}
}

func TestInstanceContinuesWhereItStopped(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"", t.TempDir()} {
		_, brokers := cluster(t, "in", "out")
		for round := range 3 {
			produce(t, brokers, "in", 20, 1)
			inst := run(t, instance.Config{Brokers: brokers, Graph: counting("g"), StorageDir: dir, InstanceID: "i1"})
			got := read(t, brokers, "out", 20*(round+1))
			for i, m := range got {
				require.Equal(t, strconv.Itoa(i+1), string(m.Value))
			}
			inst.stop()
			require.NoError(t, inst.wait(t))
		}
	}
}

// send produces values under one key, in order.
func send(t testing.TB, brokers []string, topic, key string, values ...string) {
	t.Helper()
	p, err := sarama.NewSyncProducer(brokers, kafka.Config())
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	for _, v := range values {
		_, _, err := p.SendMessage(&sarama.ProducerMessage{
			Topic: topic, Key: sarama.StringEncoder(key), Value: sarama.StringEncoder(v),
		})
		require.NoError(t, err)
	}
}
