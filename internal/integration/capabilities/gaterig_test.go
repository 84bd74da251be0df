package capabilities

import (
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/topics"
)

// gateRig is the groups of gates, a publisher, and a reader of the outcomes.
type gateRig struct {
	*world
	to       *processors.KafkaPublisher
	outcomes map[string][]topics.GateOutcome // committed records by gate
}

func newGateRig(t *testing.T, guarantee processors.Guarantee, partitions int32) *gateRig {
	t.Helper()
	w := newWorld(t, guarantee, partitions, topics.WithGates(), topics.WithChannels())
	return &gateRig{world: w, to: w.publisher(), outcomes: map[string][]topics.GateOutcome{}}
}

// builder is gate.Graph or gate.GrantsGraph.
type builder func(agent string, c gate.Config) (*goka.GroupGraph, error)

// with returns a builder with a policy.
func (b builder) with(p approval.Policy) builder {
	return func(agent string, _ gate.Config) (*goka.GroupGraph, error) { return b(agent, gate.Config{Policy: p}) }
}

// run starts one of the groups.
func (f *gateRig) run(graph builder, name string, more ...processors.Option) *instance {
	f.tb.Helper()
	g, err := graph(f.agent, gate.Config{})
	require.NoError(f.tb, err)
	return f.group(g, name, more...)
}

// watch reads the outcomes until the test ends.
func (f *gateRig) watch() {
	f.tb.Helper()
	f.read(func(r *kgo.Record) {
		o := decode(f.world, f.topics.GateOutcomes, r)
		f.outcomes[o.GateID] = append(f.outcomes[o.GateID], o)
	}, f.topics.GateOutcomes.Name())
}

// ended returns how many gates have an outcome.
func (f *gateRig) ended() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.outcomes)
}

// of returns the outcomes of a gate.
func (f *gateRig) of(gateID string) []topics.GateOutcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.outcomes[gateID]
}

func publish[T any](f *gateRig, topic topics.Topic[T], key string, value T) {
	f.tb.Helper()
	out, err := processors.OutboundOf(topic, key, value, "")
	require.NoError(f.tb, err)
	require.NoError(f.tb, f.to.Publish(f.tb.Context(), out))
}

func (f *gateRig) ask(session, id string, expires time.Time) {
	f.tb.Helper()
	publish(f, f.topics.GateRequests, session, topics.GateRequest{
		GateID: id, SessionID: session, Kind: topics.GateTool, Tool: "pay", Args: topics.Raw(`{"cents":5}`), Effect: "ask",
		ExpiresMS: expires.UnixMilli(),
	})
}

func (f *gateRig) decide(session, id, decisionID string, verdict topics.GateVerdict) {
	f.tb.Helper()
	require.NoError(f.tb, gate.Decide(f.tb.Context(), f.to, f.agent, topics.GateDecision{
		GateID: id, SessionID: session, DecisionID: decisionID, Verdict: verdict, By: "ines",
	}))
}
