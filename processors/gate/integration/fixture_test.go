package integration

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
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/topics"
)

const waitLimit = 3 * time.Minute

// both runs a test under each guarantee.
func both(t *testing.T, test func(t *testing.T, guarantee processors.Guarantee)) {
	for _, g := range []processors.Guarantee{processors.AtLeastOnce, processors.ExactlyOnce} {
		t.Run(string(g), func(t *testing.T) { test(t, g) })
	}
}

// fixture is a broker, a publisher, and a reader of the outcomes.
type fixture struct {
	t          *testing.T
	guarantee  processors.Guarantee
	partitions int32
	brokers    []string
	agent      string
	topics     topics.Catalog
	to         *processors.KafkaPublisher

	mu       sync.Mutex
	outcomes map[string][]topics.GateOutcome // committed records by gate
}

func newFixture(t *testing.T, guarantee processors.Guarantee, partitions int32) *fixture {
	t.Helper()
	f := &fixture{
		t: t, guarantee: guarantee, partitions: partitions, brokers: testbroker.Start(t), agent: testbroker.Agent(),
		outcomes: map[string][]topics.GateOutcome{},
	}
	var err error
	f.topics, err = topics.For(f.agent, topics.WithGates(), topics.WithChannels())
	require.NoError(t, err)
	f.to, err = processors.NewPublisher(f.brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.to.Close()) })
	return f
}

// options returns the options of a processor of either group.
func options(catalog topics.Catalog, instance string, guarantee processors.Guarantee, partitions int32) []processors.Option {
	return []processors.Option{
		processors.WithTopics(catalog), processors.WithPartitions(partitions), processors.WithInstance(instance),
		processors.WithGuarantee(guarantee), processors.WithTick(10 * time.Millisecond),
	}
}

// group is a running processor.
type group struct {
	*processors.Processor
	stop func()
}

// builder is gate.Graph or gate.GrantsGraph.
type builder func(agent string, opts ...gate.Option) (*goka.GroupGraph, error)

// with returns a builder with a policy.
func (b builder) with(p approval.Policy) builder {
	return func(agent string, _ ...gate.Option) (*goka.GroupGraph, error) { return b(agent, gate.WithPolicy(p)) }
}

// run starts one of the groups and waits until its state is Running.
func (f *fixture) run(graph builder, name string, more ...processors.Option) *group {
	f.t.Helper()
	g, err := graph(f.agent)
	require.NoError(f.t, err)
	p, err := processors.New(f.brokers, g, append(options(f.topics, name, f.guarantee, f.partitions), more...)...)
	require.NoError(f.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ran; !errors.Is(err, processors.ErrKilled) {
			require.NoError(f.t, err)
		}
	})
	f.t.Cleanup(stop)
	require.Eventually(f.t, func() bool { return p.Health().State == processors.Running }, waitLimit, 5*time.Millisecond)
	return &group{p, stop}
}

// watch reads the committed outcomes until the test ends.
func (f *fixture) watch() {
	f.t.Helper()
	reader, err := kgo.NewClient(kgo.SeedBrokers(f.brokers...), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeTopics(f.topics.GateOutcomes.Name()), kgo.FetchMaxWait(20*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(f.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			fetches := reader.PollFetches(ctx)
			f.mu.Lock()
			fetches.EachRecord(func(r *kgo.Record) {
				d := f.topics.GateOutcomes.Codec().Unmarshal(r.Value)
				if d.Err != nil {
					f.t.Errorf("offset %d: %v", r.Offset, d.Err)
				}
				f.outcomes[d.Value.GateID] = append(f.outcomes[d.Value.GateID], d.Value)
			})
			f.mu.Unlock()
		}
	}()
	f.t.Cleanup(func() {
		cancel()
		<-done
		reader.Close()
	})
}

// ended returns how many gates have an outcome.
func (f *fixture) ended() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.outcomes)
}

// of returns the outcomes of a gate.
func (f *fixture) of(gateID string) []topics.GateOutcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.outcomes[gateID]
}

func publish[T any](f *fixture, topic topics.Topic[T], key string, value T) {
	f.t.Helper()
	out, err := processors.OutboundOf(topic, key, value, "")
	require.NoError(f.t, err)
	require.NoError(f.t, f.to.Publish(f.t.Context(), out))
}

func (f *fixture) ask(session, id string, expires time.Time) {
	f.t.Helper()
	publish(f, f.topics.GateRequests, session, topics.GateRequest{
		GateID: id, SessionID: session, Kind: topics.GateTool, Tool: "pay", Args: topics.Raw(`{"cents":5}`), Effect: "ask",
		ExpiresMS: expires.UnixMilli(),
	})
}

func (f *fixture) decide(session, id, decisionID string, verdict topics.GateVerdict) {
	f.t.Helper()
	require.NoError(f.t, gate.Decide(f.t.Context(), f.to, f.agent, topics.GateDecision{
		GateID: id, SessionID: session, DecisionID: decisionID, Verdict: verdict, By: "ines",
	}))
}
