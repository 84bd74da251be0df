package whole

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/delegation"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

// channelWorld is an agent that people talk to on channels and another one to whom it hands work off, with all groups, the bridge and the
// sinks of both. The models are scripts.
type channelWorld struct {
	*world
	front, back string
	catalogs    map[string]topics.Catalog
	live        atomic.Pointer[channel.Settings]
	bridge      *channel.Bridge
	wall        *wall
	accounts    []channel.AccountAdapter
	delegation  delegation.Config // of the front agent
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

// newChannelWorld returns a world that has the accounts "main" of slack, telegram and irc, on which everyone may write.
func newChannelWorld(t *testing.T, guarantee processors.Guarantee) *channelWorld {
	t.Helper()
	options := []topics.CatalogOption{topics.WithChannels(), topics.WithDeliveries(), topics.WithGates()}
	d := &channelWorld{
		world: newWorld(t, guarantee, options...), back: testbroker.AgentOf(t), wall: newWall(), scripts: map[string]think.Func{},
	}
	d.front = d.agent
	d.catalogs = map[string]topics.Catalog{d.front: d.catalog, d.back: must(topics.For(d.back, options...))}
	d.holdBack()
	d.release()
	d.configure("slack", "telegram", "irc")
	d.bridge = must(channel.NewBridge(d.live.Load, d.to, []topics.Catalog{d.catalog}, channel.BridgeConfig{}))
	for _, name := range []string{"slack", "telegram", "irc"} {
		d.accounts = append(d.accounts, channel.AccountAdapter{Name: "main", Adapter: painter{name, d.wall}})
	}
	d.scripts[d.front], d.scripts[d.back] = d.handOff, d.work
	return d
}

// configure replaces the settings: one account of each channel. An element may have more settings: "slack, rate_limit: 1".
func (d *channelWorld) configure(channels ...string) {
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
	s, err := channel.ParseSettings([]byte(b.String()))
	require.NoError(d.t, err)
	d.live.Store(s)
}

// start runs everything until the test ends.
func (d *channelWorld) start() *channelWorld {
	d.t.Helper()
	var groups []*running
	for _, name := range []string{d.front, d.back} {
		for _, g := range d.graphs(name) {
			groups = append(groups, d.world.start("one", d.catalogs[name], g))
		}
	}
	for _, g := range groups {
		g.await()
	}
	for name, script := range d.scripts {
		d.model(name, script)
	}
	s := must(sink.New(d.front, d.to, sink.Config{
		Transports: map[string]sink.Transport{topics.KindChannel: must(channel.NewTransport(d.front, d.live.Load, d.accounts, channel.TransportConfig{}))},
	}))
	d.serve(func(ctx context.Context) error { return s.Run(ctx, d.brokers) })
	if d.policy != nil {
		w := must(tools.NewWorker(d.front, d.to, map[string]tools.Func{"pay": d.pay}, tools.Config{IgnoreUnknown: true}))
		d.serve(func(ctx context.Context) error { return w.Run(ctx, d.brokers) })
	}
	return d
}

// graphs returns the groups of an agent.
func (d *channelWorld) graphs(name string) []*goka.GroupGraph {
	d.t.Helper()
	turns := turn.Config{Channels: true, Policy: turn.Queue, QueueLimit: 64}
	var delegations delegation.Config
	if name == d.front {
		delegations = d.delegation
	}
	if len(delegations.Agents) == 0 {
		delegations.Agents = []string{d.front, d.back}
	}
	if name == d.front {
		turns.Approval = d.policy
	}
	graphs := []*goka.GroupGraph{must(turn.Graph(name, turns)), must(delegation.Graph(name, delegations))}
	if name == d.front {
		graphs = append(graphs, must(delivery.Graph(name, delivery.Config{Channels: true})), must(delivery.RoutesGraph(name, delivery.Config{})))
	}
	if name == d.front && d.policy != nil {
		graphs = append(graphs, must(gate.Graph(name, gate.Config{Policy: *d.policy, Channels: true})), must(gate.GrantsGraph(name, gate.Config{})))
	}
	return graphs
}

// seen returns the steps that the front agent's model was asked.
func (d *channelWorld) seen() []think.Step {
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
func (d *channelWorld) say(o topics.Origin, said string, change ...func(*adapter.Inbound)) {
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
func (d *channelWorld) gets(o topics.Origin, texts ...string) {
	d.t.Helper()
	require.EventuallyWithT(d.t, func(c *assert.CollectT) { require.Equal(c, texts, d.wall.at(o)) }, waitLimit, tick)
}

// only fails the test if anything was posted elsewhere than at the origins.
func (d *channelWorld) only(origins ...topics.Origin) {
	d.t.Helper()
	for _, c := range d.wall.all() {
		known := false
		for _, o := range origins {
			known = known || c.To.SamePlace(o)
		}
		require.True(d.t, known, "%q was posted at %s/%s %s", c.Text, c.To.Channel, c.To.Recipient, c.To.Thread)
	}
}

// ended waits for a delegation that has ended as wanted and returns it.
func (d *channelWorld) ended(want func(topics.Delegation) bool) (found topics.Delegation) {
	d.t.Helper()
	d.eventually(func() bool {
		for _, v := range valuesOf(d.world, d.catalogs[d.front].DelegationStatus) {
			if v.Status != topics.DelegationOpen && want(v) {
				found = v
				return true
			}
		}
		return false
	})
	return found
}

// receipt waits for a final receipt of a delivery to a channel that is as wanted.
func (d *channelWorld) receipt(want func(topics.Receipt) bool) (found topics.Receipt) {
	d.t.Helper()
	d.eventually(func() bool {
		for _, v := range valuesOf(d.world, d.catalogs[d.front].DeliveryReceipts) {
			if want(v) {
				found = v
				return true
			}
		}
		return false
	})
	return found
}
