package whole

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/bridge"
	"github.com/turntable-streams/turntable/processors/channel/settings"
	"github.com/turntable-streams/turntable/processors/channel/transport"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

// tick is how often tests look.
const tick = 5 * time.Millisecond

// desk is an agent that people talk to on channels and another one to whom it hands work off, with all groups, the bridge and the
// sinks of both. The models are scripts.
type desk struct {
	t           *testing.T
	guarantee   processors.Guarantee
	brokers     []string
	front, back string
	catalogs    map[string]topics.Catalog
	to          *processors.KafkaPublisher
	live        atomic.Pointer[settings.Settings]
	bridge      *bridge.Bridge
	wall        *wall
	accounts    []transport.Account
	delegation  []channel.Option // of the front agent
	policy      *approval.Policy
	scripts     map[string]think.Func // by agent; without one, its model does not run
	events      atomic.Int64
	paid        atomic.Int64

	// hold is closed when the back agent may answer; begun counts its model's calls, and stopped those that were ended.
	hold           chan struct{}
	release        func()
	begun, stopped atomic.Int64

	mu    sync.Mutex
	steps []think.Step // of the front agent's model, in order
}

// newDesk returns a desk that has the accounts "main" of slack, telegram and irc, on which everyone may write.
func newDesk(t *testing.T, guarantee processors.Guarantee) *desk {
	t.Helper()
	d := &desk{
		t: t, guarantee: guarantee, brokers: testbroker.Start(t), front: testbroker.Agent(), back: testbroker.Agent(),
		catalogs: map[string]topics.Catalog{}, wall: newWall(), scripts: map[string]think.Func{},
	}
	for _, name := range []string{d.front, d.back} {
		c, err := topics.For(name, topics.WithChannels(), topics.WithDeliveries(), topics.WithGates())
		require.NoError(t, err)
		d.catalogs[name] = c
	}
	d.holdBack()
	d.release()
	var err error
	d.to, err = processors.NewPublisher(d.brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.to.Close()) })
	d.configure("slack", "telegram", "irc")
	d.bridge, err = bridge.New(d.live.Load, d.to, []topics.Catalog{d.catalogs[d.front]})
	require.NoError(t, err)
	for _, name := range []string{"slack", "telegram", "irc"} {
		d.accounts = append(d.accounts, transport.Account{Name: "main", Adapter: painter{name, d.wall}})
	}
	d.scripts[d.front], d.scripts[d.back] = d.handOff, d.work
	return d
}

// configure replaces the settings: one account of each channel. An element may have more settings: "slack, rate_limit: 1".
func (d *desk) configure(channels ...string) {
	d.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "agents: [{name: %s, description: Answers first.}]\ndefault_agent: %s\naccounts:\n", d.front, d.front)
	for _, c := range channels {
		name := "main"
		if strings.Contains(c, "group:") {
			fmt.Fprintf(&b, "- {name: %s, channel: %s}\n", name, c)
		} else {
			fmt.Fprintf(&b, "- {name: %s, group: all, channel: %s}\n", name, c)
		}
	}
	s, err := settings.Parse([]byte(b.String()))
	require.NoError(d.t, err)
	d.live.Store(s)
}

// start runs everything until the test ends.
func (d *desk) start() *desk {
	d.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	group, ctx := errgroup.WithContext(ctx)
	d.t.Cleanup(func() {
		cancel()
		require.NoError(d.t, group.Wait())
	})
	var running []*processors.Processor
	for _, name := range []string{d.front, d.back} {
		for _, g := range d.graphs(name) {
			p, err := processors.New(d.brokers, g, processors.WithTopics(d.catalogs[name]), processors.WithPartitions(2),
				processors.WithInstance("one"), processors.WithGuarantee(d.guarantee), processors.WithTick(10*time.Millisecond))
			require.NoError(d.t, err)
			running = append(running, p)
			group.Go(func() error { return p.Run(ctx) })
		}
	}
	for _, p := range running {
		require.Eventually(d.t, func() bool { return p.Health().State == processors.Running }, waitLimit, 5*time.Millisecond)
	}
	for name, script := range d.scripts {
		m, err := think.New(name, d.to, script)
		require.NoError(d.t, err)
		group.Go(func() error { return m.Run(ctx, d.brokers) })
	}
	posts, err := transport.New(d.front, d.live.Load, d.accounts)
	require.NoError(d.t, err)
	s, err := sink.New(d.front, d.to, sink.WithTransport(topics.KindChannel, posts))
	require.NoError(d.t, err)
	group.Go(func() error { return s.Run(ctx, d.brokers) })
	if d.policy != nil {
		w, err := tools.New(d.front, d.to, map[string]tools.Func{"pay": d.pay}, tools.WithOthersLeft())
		require.NoError(d.t, err)
		group.Go(func() error { return w.Run(ctx, d.brokers) })
	}
	return d
}

// graphs returns the groups of an agent.
func (d *desk) graphs(name string) []*goka.GroupGraph {
	d.t.Helper()
	turns := []turn.Option{turn.WithChannels(), turn.WithQueue(turn.Queue, 64)}
	opts := []channel.Option{channel.WithAgents(d.front, d.back)}
	if name == d.front {
		opts = append(opts, d.delegation...)
	}
	if name == d.front && d.policy != nil {
		turns = append(turns, turn.WithApproval(*d.policy))
	}
	var graphs []*goka.GroupGraph
	add := func(g *goka.GroupGraph, err error) {
		d.t.Helper()
		require.NoError(d.t, err)
		graphs = append(graphs, g)
	}
	add(turn.Graph(name, turns...))
	add(channel.Graph(name, opts...))
	if name == d.front {
		add(delivery.Graph(name, delivery.WithChannels()))
		add(delivery.RoutesGraph(name))
	}
	if name == d.front && d.policy != nil {
		add(gate.Graph(name, gate.WithPolicy(*d.policy), gate.WithChannels()))
		add(gate.GrantsGraph(name))
	}
	return graphs
}

// seen returns the steps that the front agent's model was asked.
func (d *desk) seen() []think.Step {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]think.Step(nil), d.steps...)
}

// dm is where a person writes directly.
func dm(channel, user string) topics.Origin {
	return topics.Origin{Channel: channel, Account: "main", Recipient: "d-" + user, User: user, UserName: strings.ToUpper(user)}
}

// room is where a person writes in a room, in a thread unless that is empty.
func room(channel, name, thread, user string) topics.Origin {
	return topics.Origin{
		Channel: channel, Account: "main", Recipient: name, Thread: thread, User: user, UserName: strings.ToUpper(user), Group: true,
	}
}

// say passes what a person writes to the bridge.
func (d *desk) say(o topics.Origin, said string, change ...func(*adapter.Inbound)) {
	d.t.Helper()
	n := strconv.FormatInt(d.events.Add(1), 10)
	o.MessageID = "m" + n
	in := adapter.Inbound{Event: "e" + n, Origin: o, Text: said, Mentioned: true}
	for _, f := range change {
		f(&in)
	}
	require.NoError(d.t, d.bridge.Receive(d.t.Context(), in))
}

// gets waits until the place of an origin has exactly the texts, in their order.
func (d *desk) gets(o topics.Origin, texts ...string) {
	d.t.Helper()
	require.EventuallyWithT(d.t, func(c *assert.CollectT) { require.Equal(c, texts, d.wall.at(o)) }, waitLimit, 5*time.Millisecond)
}

// only fails the test if anything was posted elsewhere than at the origins.
func (d *desk) only(origins ...topics.Origin) {
	d.t.Helper()
	for _, c := range d.wall.all() {
		known := false
		for _, o := range origins {
			known = known || c.To.SamePlace(o)
		}
		require.True(d.t, known, "%q was posted at %s/%s %s", c.Text, c.To.Channel, c.To.Recipient, c.To.Thread)
	}
}

// valuesOf reads a topic up to its end.
func valuesOf[T any](d *desk, t topics.Topic[T]) (list []T) {
	d.t.Helper()
	for _, r := range allOf(d.t.Context(), d.t, d.brokers, t.Name()) {
		if r.Value == nil {
			continue
		}
		v := any(t.Codec().Unmarshal(r.Value)).(codec.Decoded[T])
		require.NoError(d.t, v.Err)
		list = append(list, v.Value)
	}
	return list
}

// ended waits for a delegation that has ended as wanted and returns it.
func (d *desk) ended(want func(topics.Delegation) bool) (found topics.Delegation) {
	d.t.Helper()
	require.Eventually(d.t, func() bool {
		for _, v := range valuesOf(d, d.catalogs[d.front].DelegationStatus) {
			if v.Status != topics.DelegationOpen && want(v) {
				found = v
				return true
			}
		}
		return false
	}, waitLimit, 20*time.Millisecond)
	return found
}

// receipt waits for a final receipt of a delivery to a channel that is as wanted.
func (d *desk) receipt(want func(topics.Receipt) bool) (found topics.Receipt) {
	d.t.Helper()
	require.Eventually(d.t, func() bool {
		for _, v := range valuesOf(d, d.catalogs[d.front].DeliveryReceipts) {
			if want(v) {
				found = v
				return true
			}
		}
		return false
	}, waitLimit, 20*time.Millisecond)
	return found
}
