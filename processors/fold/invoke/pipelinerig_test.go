package invoke

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// broker is a broker with an agent's topics, and a publisher.
type broker struct {
	t       testing.TB
	addrs   []string
	catalog topics.Catalog
	to      *processors.KafkaPublisher
}

// newBroker returns a broker on which the fold group runs.
func newBroker(t testing.TB, change ...func(*fold.Config)) *broker {
	t.Helper()
	b, err := embedded.Start(embedded.Config{Partitions: 3})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	catalog, err := topics.For("pilot", topics.WithEvents(), topics.WithGates())
	require.NoError(t, err)
	admin, err := sarama.NewClusterAdmin(b.Addrs(), kafka.Config())
	require.NoError(t, err)
	require.NoError(t, topics.Ensure(t.Context(), admin, catalog))
	require.NoError(t, admin.Close())
	to, err := processors.NewPublisher(b.Addrs())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, to.Close()) })
	br := &broker{t, b.Addrs(), catalog, to}
	var c fold.Config
	for _, f := range change {
		f(&c)
	}
	br.runs(must(fold.Graph("pilot", c)))
	return br
}

// runs runs a group.
func (b *broker) runs(g *goka.GroupGraph) {
	b.t.Helper()
	running := make(chan struct{})
	once := sync.OnceFunc(func() { close(running) })
	p, err := processors.New(b.addrs, g, processors.WithTopics(b.catalog),
		processors.WithMetrics(processors.Metrics{State: func(s processors.State) {
			if s == processors.Running {
				once()
			}
		}}))
	require.NoError(b.t, err)
	b.serves(p.Run)
	<-running
}

func configOf(change []func(*PipelineConfig)) (c PipelineConfig) {
	for _, f := range change {
		f(&c)
	}
	return c
}

// pipeline is a door's agent over the broker, ready.
func (b *broker) pipeline(change ...func(*PipelineConfig)) *Pipeline {
	b.t.Helper()
	p, err := NewPipeline("pilot", b.addrs, b.to, configOf(change))
	require.NoError(b.t, err)
	b.serves(p.Run)
	<-p.Ready()
	return p
}

// messages returns a channel of the messages on message-input.
func (b *broker) messages() <-chan topics.Message {
	b.t.Helper()
	messages := make(chan topics.Message, 10)
	b.follow(func(r processors.Inbound) { messages <- b.catalog.MessageInput.Codec().Unmarshal(r.Value).Value }, b.catalog.MessageInput.Name())
	return messages
}

func (b *broker) follow(handle func(processors.Inbound), names ...string) {
	b.t.Helper()
	f, err := processors.NewFollower(b.addrs, names, handle)
	require.NoError(b.t, err)
	b.serves(f.Run)
	<-f.Ready()
}

// serves calls run until the end of the test.
func (b *broker) serves(run func(context.Context) error) {
	b.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	b.t.Cleanup(func() {
		stop()
		require.NoError(b.t, <-ended)
	})
}

func requestOf(m topics.Message) string {
	id, _ := text(member(topics.Raw(m.Metadata), "request_id"))
	return id
}

// write also writes after the test's function has ended: its response can arrive before the acknowledgement of the last record.
func (b *broker) write(events ...topics.AgentEvent) {
	b.t.Helper()
	ctx := context.WithoutCancel(b.t.Context())
	for _, e := range events {
		out, err := processors.OutboundOf(b.catalog.AgentEvents, e.SessionID, e, "")
		require.NoError(b.t, err)
		require.NoError(b.t, b.to.Publish(ctx, out))
	}
}

// records are a turn's events as records, with a terminal one.
func records(session, turn string, attempt int64, events []folder.Event, result topics.AgentResult) []topics.AgentEvent {
	var list []topics.AgentEvent
	for i, e := range events {
		list = append(list, topics.AgentEvent{
			SessionID: session, TurnID: turn, Attempt: attempt, Seq: int64(i + 1), Event: topics.Raw(e.Wrapped()),
		})
	}
	return append(list, topics.AgentEvent{
		SessionID: session, TurnID: turn, Attempt: attempt, Seq: int64(len(events) + 1), Result: &result,
	})
}

// answering plays a turn for every message.
func (b *broker) answering(play func(m topics.Message) []topics.AgentEvent) {
	messages := b.messages()
	done := make(chan struct{})
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer close(done)
		for {
			select {
			case m := <-messages:
				for _, e := range play(m) {
					out, err := processors.OutboundOf(b.catalog.AgentEvents, e.SessionID, e, "")
					if err == nil {
						err = b.to.Publish(context.Background(), out) // the test may end with the answer, before the acknowledgement
					}
					if err != nil {
						b.t.Error(err)
					}
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	b.t.Cleanup(func() { stop(); <-done })
}

var endTurn = "end_turn"

func must[T any](d T, err error) T {
	if err != nil {
		panic(err)
	}
	return d
}

// counting is randomness that differs from request to request.
type counting struct{ n byte }

func (c *counting) Read(p []byte) (int, error) {
	c.n++
	copy(p, bytes.Repeat([]byte{c.n}, len(p)))
	return len(p), nil
}
