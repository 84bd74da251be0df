package agents

import (
	"context"
	"fmt"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/peer/peerhttp"
	"github.com/turntable-streams/turntable/processors/peer/transport"
	"github.com/turntable-streams/turntable/topics"
)

const waitLimit = 2 * time.Minute

// instance is an agent with all that delegates its tasks and runs those of peers, and a scripted agent that answers.
type instance struct {
	t       *testing.T
	id      string
	agent   string
	catalog topics.Catalog
	brokers []string
	to      *processors.KafkaPublisher
	config  atomic.Pointer[peer.Settings]
	doors   []*httptest.Server

	script script
	mu     sync.Mutex
	audits []topics.PeerAudit
	keys   []string // of the audit's records
	tools  map[string][]topics.ToolUseResult
	gone   chan struct{} // closed when the test ends
}

// start makes an instance with a number of doors, each of a process of its own.
func start(t *testing.T, brokers []string, id string, doors int) *instance {
	t.Helper()
	i := &instance{
		t: t, id: id, agent: testbroker.AgentOf(t), brokers: brokers, tools: map[string][]topics.ToolUseResult{},
		gone: make(chan struct{}),
	}
	t.Cleanup(func() { close(i.gone) })
	var err error
	i.catalog, err = topics.For(i.agent, topics.WithPeers(), topics.WithGates())
	require.NoError(t, err)
	require.NoError(t, topics.EnsureCluster(t.Context(), brokers, kafka.Config(), i.catalog, topics.WithPartitions(2)))
	i.to, err = processors.NewPublisher(brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.to.Close()) })
	i.configure(`{"enabled":false}`)
	i.script.init(i)

	c := i.catalog
	observer, err := processors.NewFollower(brokers, []string{
		c.MessageInput.Name(), c.SessionControl.Name(), c.ToolUseResult.Name(), c.PeerAudit.Name(),
	}, i.observe)
	require.NoError(t, err)
	i.background(observer.Run)
	i.ready(observer.Ready())

	i.group(peer.Graph(i.agent, peer.Config{
		Settings: i.config.Load, Gates: true, GateGrace: 50 * time.Millisecond,
		RetryInitial: 20 * time.Millisecond, RetryLongest: 200 * time.Millisecond,
	}))
	i.group(peer.ChainGraph(i.agent))

	attempts := transport.New(i.config.Load, transport.Config{})
	t.Cleanup(attempts.Close)
	sender, err := sink.New(i.agent, i.to, sink.Config{Peers: true, Transports: map[string]sink.Transport{transport.Kind: attempts}})
	require.NoError(t, err)
	i.background(func(ctx context.Context) error { return sender.Run(ctx, brokers) })
	i.background(func(ctx context.Context) error { return attempts.Run(ctx, i.agent, brokers) })
	for range doors {
		i.door()
	}
	return i
}

// background runs a function until the test ends.
func (i *instance) background(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- run(ctx) }()
	i.t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			i.t.Error(err)
		}
	})
}

func (i *instance) ready(ready <-chan struct{}) {
	i.t.Helper()
	select {
	case <-ready:
	case <-time.After(waitLimit):
		require.FailNow(i.t, "a part of the instance is not ready")
	}
}

// group runs one of the groups of package peer.
func (i *instance) group(graph *goka.GroupGraph, err error) {
	i.t.Helper()
	require.NoError(i.t, err)
	p, err := processors.New(i.brokers, graph, processors.WithTopics(i.catalog), processors.WithPartitions(2),
		processors.WithInstance(fmt.Sprint(graph.Group())), processors.WithTick(10*time.Millisecond))
	require.NoError(i.t, err)
	i.background(p.Run)
	require.Eventually(i.t, func() bool { return p.Health().State == processors.Running }, waitLimit, 5*time.Millisecond)
}

// door is the door of another process.
func (i *instance) door() {
	i.t.Helper()
	replies, err := peerhttp.NewReplies(i.agent, peerhttp.Config{})
	require.NoError(i.t, err)
	i.background(func(ctx context.Context) error { return replies.Run(ctx, i.brokers) })
	handler, err := peerhttp.New(replies, i.to, i.config.Load, peerhttp.Config{OpenProxy: true, AppVersion: "1.2", Door: auth.Door{
		Limits: auth.Limits{BodyIdle: waitLimit}, // uploads of tests wait for one another
	}})
	require.NoError(i.t, err)
	server := httptest.NewServer(handler)
	i.t.Cleanup(server.Close)
	i.ready(replies.Ready())
	i.doors = append(i.doors, server)
}

// configure replaces the settings. Arguments are those of fmt.Sprintf.
func (i *instance) configure(peers string, args ...any) {
	i.t.Helper()
	s, err := peer.ParseSettings(fmt.Appendf(nil, `{"peers":`+peers+`}`, args...), func(string) (string, bool) { return "", false })
	require.NoError(i.t, err)
	i.config.Store(s)
}

// observe is called for the records that the test looks at.
func (i *instance) observe(r processors.Inbound) {
	switch c := i.catalog; r.Topic {
	case c.MessageInput.Name():
		i.script.message(c.MessageInput.Codec().Unmarshal(r.Value).Value)
	case c.SessionControl.Name():
		i.script.control(string(r.Key), c.SessionControl.Codec().Unmarshal(r.Value).Value)
	case c.ToolUseResult.Name():
		result := c.ToolUseResult.Codec().Unmarshal(r.Value).Value
		i.mu.Lock()
		i.tools[*result.ToolUseID] = append(i.tools[*result.ToolUseID], result)
		i.mu.Unlock()
		i.script.toolResult(result)
	case c.PeerAudit.Name():
		d := c.PeerAudit.Codec().Unmarshal(r.Value)
		if d.Err != nil {
			i.t.Errorf("audit: %v", d.Err)
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		i.audits, i.keys = append(i.audits, d.Value), append(i.keys, string(r.Key))
	}
}

// chain returns the audit of the instance, in the order of its chain.
func (i *instance) chain() []topics.PeerAudit {
	i.mu.Lock()
	defer i.mu.Unlock()
	return peer.Sorted(i.id, i.audits)
}

// events returns the events about a task.
func (i *instance) events(taskID string) (list []topics.PeerEvent) {
	for _, r := range i.chain() {
		if r.TaskID == taskID {
			list = append(list, r.Event)
		}
	}
	return list
}

// audited blocks until the audit has exactly these events about a task.
func (i *instance) audited(taskID string, want ...topics.PeerEvent) {
	i.t.Helper()
	require.Eventually(i.t, func() bool { return len(i.events(taskID)) >= len(want) }, waitLimit, 5*time.Millisecond, "%s of %s", i.id, taskID)
	require.Equal(i.t, want, i.events(taskID), "%s of %s", i.id, taskID)
}

// publish writes a record.
func publish[T any](i *instance, topic topics.Topic[T], key string, value T, id string) {
	out, err := processors.OutboundOf(topic, key, value, id)
	if err == nil {
		err = i.to.Publish(context.Background(), out)
	}
	if err != nil {
		select {
		case <-i.gone:
		default:
			i.t.Errorf("publish to %s: %v", topic.Name(), err)
		}
	}
}
