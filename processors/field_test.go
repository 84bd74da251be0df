package processors_test

import (
	"context"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/embedded"
)

const waitLimit = time.Minute

// field is a broker with the group's topics, and a client of another make.
type field struct {
	t      *testing.T
	addrs  []string
	broker *embedded.Broker
	client *kgo.Client
}

func newField(t *testing.T, partitions int32) *field {
	t.Helper()
	b, err := embedded.Start(embedded.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	f := &field{t: t, addrs: b.Addrs(), broker: b}
	f.client, err = kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(f.client.Close)
	_, err = kadm.NewClient(f.client).CreateTopics(t.Context(), partitions, 1, nil, askName, "answers")
	require.NoError(t, err)
	return f
}

func (f *field) put(partition int32, key, value []byte, headers ...kgo.RecordHeader) {
	f.t.Helper()
	r := &kgo.Record{Topic: askName, Partition: partition, Key: key, Value: value, Headers: headers}
	require.NoError(f.t, f.client.ProduceSync(f.t.Context(), r).FirstErr())
}

// take reads want records of a topic, or more, from its start.
func (f *field) take(topic string, want int) []*kgo.Record {
	f.t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(f.addrs...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(50*time.Millisecond))
	require.NoError(f.t, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(f.t.Context(), waitLimit)
	defer cancel()
	var got []*kgo.Record
	for len(got) < want && ctx.Err() == nil {
		got = append(got, c.PollFetches(ctx).Records()...)
	}
	require.GreaterOrEqual(f.t, len(got), want, topic)
	return got
}

func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// start runs a processor until the test ends.
func (f *field) start(graph *goka.GroupGraph, opts ...processors.Option) *processors.Processor {
	f.t.Helper()
	p, err := processors.New(f.addrs, graph, opts...)
	require.NoError(f.t, err)
	require.Equal(f.t, processors.NotStarted, p.Health().State)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	f.t.Cleanup(func() {
		cancel()
		require.NoError(f.t, <-ran)
		require.Equal(f.t, processors.Stopped, p.Health().State)
	})
	require.Eventually(f.t, func() bool { return p.Health().State == processors.Running }, waitLimit, 5*time.Millisecond)
	return p
}

func quote(session, text string) []byte {
	return []byte(`{"session":"` + session + `","text":"` + text + `"}`)
}
