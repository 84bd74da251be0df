package agent

import (
	"context"
	"errors"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/fold/group"
	"github.com/turntable-streams/turntable/processors/fold/invoke"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/memoir"
	"github.com/turntable-streams/turntable/processors/memoir/cost"
	"github.com/turntable-streams/turntable/processors/memoir/latency"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// capability is what one field of Config switches on.
type capability struct {
	on     bool
	topics []topics.CatalogOption
	turn   []turn.Option
	groups []func(agent string) (*goka.GroupGraph, error)
	tools  []think.Tool // that a group answers
}

// capabilities are those of a configuration, whether they are on or not. They are the only place that knows what belongs
// together.
func (c *Config) capabilities() []capability {
	gated, peered, delegates := c.Approval != nil, c.Peers != nil, len(c.Delegates) > 0
	budgets := c.Budgets != turn.Budgets{}
	return []capability{
		// The turn writes the stream also of turns that end before the model is asked.
		{on: true, topics: []topics.CatalogOption{topics.WithEvents()}, turn: []turn.Option{turn.WithEvents()}},
		{
			on: gated, topics: []topics.CatalogOption{topics.WithGates()},
			turn: optional(gated, func() []turn.Option { return []turn.Option{turn.WithApproval(*c.Approval), turn.WithGates()} }),
			groups: []func(string) (*goka.GroupGraph, error){
				func(a string) (*goka.GroupGraph, error) { return gate.Graph(a, gate.WithPolicy(*c.Approval)) },
				func(a string) (*goka.GroupGraph, error) { return gate.GrantsGraph(a, gate.WithPolicy(*c.Approval)) },
			},
		},
		{
			on: c.Compactor != nil, topics: []topics.CatalogOption{topics.WithCompaction()},
			turn: []turn.Option{turn.WithCompaction(turn.Compaction{})},
		},
		{
			on: c.Memory != nil, topics: []topics.CatalogOption{topics.WithMemoir()},
			turn: optional(c.Memory != nil, func() []turn.Option {
				return []turn.Option{turn.WithMemoir(turn.Memoir{After: c.Memory.After})}
			}),
			groups: graphs(memoir.Graph),
		},
		{
			on: c.Costs || budgets, topics: []topics.CatalogOption{topics.WithCosts()}, turn: []turn.Option{turn.WithCosts()},
			groups: append(graphs(cost.Graph), graphs(cost.SpendingGraph)...),
		},
		{on: budgets, turn: []turn.Option{turn.WithBudgets(c.Budgets)}},
		{on: c.Tenant != nil, turn: []turn.Option{turn.WithTenants(c.Tenant)}},
		{
			on: c.Latencies, topics: []topics.CatalogOption{topics.WithLatencies()},
			turn: []turn.Option{turn.WithLatencies()}, groups: graphs(latency.Graph),
		},
		{on: c.Batches, groups: graphs(group.Graph, whether(gated, group.WithGates)...)},
		{
			on: c.Deliver != nil, topics: []topics.CatalogOption{topics.WithDeliveries()},
			turn: []turn.Option{turn.WithDelivery()},
			groups: optional(c.Deliver != nil, func() []func(string) (*goka.GroupGraph, error) {
				opts := append(whether(peered, delivery.WithPeerCallbacks), c.Deliver.Options...)
				return append(graphs(delivery.Graph, opts...), graphs(delivery.RoutesGraph, opts...)...)
			}),
		},
		{
			on: delegates, topics: []topics.CatalogOption{topics.WithChannels()}, turn: []turn.Option{turn.WithChannels()},
			groups: graphs(channel.Graph, append(whether(peered, channel.WithPeers), channel.WithAgents(c.Delegates...))...),
			tools:  definitions(channel.Tools(c.Delegates...)...),
		},
		{
			on: peered, topics: []topics.CatalogOption{topics.WithPeers()},
			groups: append(
				graphs(peer.Graph, append(whether(gated, peer.WithGates), peer.WithSettings(c.Peers))...),
				graphs(peer.ChainGraph, peer.WithSettings(c.Peers))...),
			tools: definitions(peer.Tool()),
		},
	}
}

// graphs returns the graph of a capability with options.
func graphs[O any](of func(string, ...O) (*goka.GroupGraph, error), opts ...O) []func(string) (*goka.GroupGraph, error) {
	return []func(string) (*goka.GroupGraph, error){func(a string) (*goka.GroupGraph, error) { return of(a, opts...) }}
}

// whether returns an option if is is true.
func whether[O any](is bool, option func() O) []O {
	if is {
		return []O{option()}
	}
	return nil
}

// optional returns what make returns if is is true.
func optional[T any](is bool, make func() []T) []T {
	if is {
		return make()
	}
	return nil
}

func definitions[D channel.ToolDefinition | peer.ToolDefinition](defined ...D) (list []think.Tool) {
	for _, d := range defined {
		list = append(list, think.Tool(d))
	}
	return list
}

// plan is what a configuration results in.
type plan struct {
	catalog topics.Catalog
	graphs  []*goka.GroupGraph // that of the turn is the first
	given   []think.Tool       // tools that groups answer
}

// plan returns the topics and the groups.
func (c *Config) plan(agent string) (p plan, err error) {
	var names []topics.CatalogOption
	options := []turn.Option{}
	var others []func(string) (*goka.GroupGraph, error)
	for _, capability := range c.capabilities() {
		if capability.on {
			names, options = append(names, capability.topics...), append(options, capability.turn...)
			others, p.given = append(others, capability.groups...), append(p.given, capability.tools...)
		}
	}
	if p.catalog, err = topics.For(agent, names...); err != nil {
		return plan{}, err
	}
	turns := graphs(turn.Graph, append(options, c.Turn...)...)
	var errs []error
	for _, graph := range append(turns, others...) {
		g, err := graph(agent)
		p.graphs, errs = append(p.graphs, g), append(errs, err)
	}
	return p, errors.Join(errs...)
}

// part runs until its context ends.
type part func(ctx context.Context) error

// connected returns a part that runs with brokers and the options of clients.
func connected(run func(context.Context, []string, ...processors.Option) error, brokers []string, opts []processors.Option) part {
	return func(ctx context.Context) error { return run(ctx, brokers, opts...) }
}

// pipelineOptions are those of /invoke.
func (c *Config) pipelineOptions(opts []processors.Option) []invoke.PipelineOption {
	return append(whether(c.Approval != nil, invoke.WithGates), invoke.WithKafka(opts...))
}
