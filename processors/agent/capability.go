package agent

import (
	"cmp"
	"context"
	"errors"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delegation"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/memoir"
	"github.com/turntable-streams/turntable/processors/memoir/cost"
	"github.com/turntable-streams/turntable/processors/memoir/latency"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// graph makes the graph of a group of an agent.
type graph func(agent string) (*goka.GroupGraph, error)

// needs are what a configuration results in.
type needs struct {
	topics []topics.CatalogOption
	turn   turn.Config
	groups []graph      // besides that of the turn
	tools  []think.Tool // that groups answer
}

func (n *needs) catalog(o ...topics.CatalogOption) { n.topics = append(n.topics, o...) }

// run adds a group with a configuration.
func run[C any](n *needs, of func(string, C) (*goka.GroupGraph, error), config C) {
	n.groups = append(n.groups, func(agent string) (*goka.GroupGraph, error) { return of(agent, config) })
}

// needs returns what the capabilities that are on need. It is the only place that knows what belongs together. What Turn sets
// overrides what a capability would set.
func (c *Config) needs() (n needs) {
	gated, peered, delegates, channels := c.Approval != nil, c.Peers != nil, len(c.Delegates) > 0, c.Channels != nil
	// The turn writes the stream also of turns that end before the model is asked. The fold group says how it ends.
	n.catalog(topics.WithEvents())
	n.turn = c.Turn
	n.turn.Events = true
	run(&n, fold.Graph, fold.Config{Gates: gated})
	if gated {
		n.catalog(topics.WithGates())
		n.turn.Approval, n.turn.Gates = cmp.Or(c.Turn.Approval, c.Approval), true
		run(&n, gate.Graph, gate.Config{Policy: *c.Approval, Channels: channels})
		run(&n, gate.GrantsGraph, gate.Config{Policy: *c.Approval})
	}
	if c.Compactor != nil {
		n.catalog(topics.WithCompaction())
		n.turn.Compaction = cmp.Or(c.Turn.Compaction, &turn.Compaction{})
	}
	if c.Memory != nil {
		n.catalog(topics.WithMemoir())
		n.turn.Memoir = cmp.Or(c.Turn.Memoir, &turn.Memoir{After: c.Memory.After})
		run(&n, memoir.Graph, memoir.Config{})
	}
	budgets := c.Budgets != turn.Budgets{}
	n.turn.Budgets = cmp.Or(c.Turn.Budgets, c.Budgets)
	if c.Costs || budgets {
		n.catalog(topics.WithCosts())
		n.turn.Costs = true
		run(&n, cost.Graph, cost.Config{})
		run(&n, cost.SpendingGraph, cost.Config{})
	}
	if n.turn.Tenants == nil {
		n.turn.Tenants = c.Tenant
	}
	if c.Latencies {
		n.catalog(topics.WithLatencies())
		n.turn.Latencies = true
		run(&n, latency.Graph, latency.Config{})
	}
	if c.Deliver != nil || channels {
		n.catalog(topics.WithDeliveries())
		var config delivery.Config
		if c.Deliver != nil {
			n.turn.Delivery, config = true, c.Deliver.Config
			config.PeerCallbacks = config.PeerCallbacks || peered
		}
		config.Channels = config.Channels || channels
		run(&n, delivery.Graph, config)
		run(&n, delivery.RoutesGraph, config)
	}
	if delegates || channels {
		n.catalog(topics.WithChannels())
		n.turn.Channels = true
	}
	if delegates {
		config := delegation.Config{Agents: c.Delegates, Peers: peered, Sessions: true}
		if channels && c.Channels.Settings != nil {
			config.Prompts = c.Channels.Settings.Prompt
		}
		run(&n, delegation.Graph, config)
		n.tools = append(n.tools, definitions(delegation.Tools(c.Delegates...)...)...)
	}
	if peered {
		n.catalog(topics.WithPeers())
		run(&n, peer.Graph, peer.Config{Settings: c.Peers, Gates: gated})
		n.groups = append(n.groups, peer.ChainGraph)
		n.tools = append(n.tools, definitions(peer.Tool())...)
	}
	return n
}

func definitions[D delegation.ToolDefinition | peer.ToolDefinition](defined ...D) (list []think.Tool) {
	for _, d := range defined {
		list = append(list, think.Tool(d))
	}
	return list
}

// plan is the topics and the groups of a configuration.
type plan struct {
	catalog topics.Catalog
	graphs  []*goka.GroupGraph // that of the turn is the first
	given   []think.Tool       // tools that groups answer
	budgets turn.Budgets
}

// names returns the names of the tools that groups answer.
func (p plan) names() (names []string) {
	for _, t := range p.given {
		names = append(names, t.Name)
	}
	return names
}

func (c *Config) plan(agent string) (p plan, err error) {
	n := c.needs()
	p.given, p.budgets = n.tools, n.turn.Budgets
	if p.catalog, err = topics.For(agent, n.topics...); err != nil {
		return plan{}, err
	}
	turns, err := turn.Graph(agent, n.turn)
	p.graphs = []*goka.GroupGraph{turns}
	for _, of := range n.groups {
		g, failed := of(agent)
		p.graphs, err = append(p.graphs, g), errors.Join(err, failed)
	}
	return p, err
}

// part runs until its context ends.
type part func(ctx context.Context) error

// connected returns a part that runs with brokers and the options of clients.
func connected(run func(context.Context, []string, ...processors.Option) error, brokers []string, opts []processors.Option) part {
	return func(ctx context.Context) error { return run(ctx, brokers, opts...) }
}
