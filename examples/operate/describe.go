package main

import (
	"context"
	"errors"
	"strings"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors/crew"
	"github.com/turntable-streams/turntable/processors/delegation"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/memoir"
	"github.com/turntable-streams/turntable/processors/memoir/cost"
	"github.com/turntable-streams/turntable/processors/memoir/latency"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/turn"
)

// describeCommand describes the groups of the agent.
type describeCommand struct{}

// groupList is the JSON of the command describe.
type groupList struct {
	Agent  string      `json:"agent"`
	Groups []groupView `json:"groups"`
}

// groupView is a group as its graph says. Lookups are tables of other groups that it reads.
type groupView struct {
	Group       string   `json:"group"`
	Inputs      []string `json:"inputs"`
	Loop        string   `json:"loop,omitempty"`
	Table       string   `json:"table"`
	Lookups     []string `json:"lookups"`
	Outputs     []string `json:"outputs"`
	DeadLetters string   `json:"dead_letters"`
	Running     bool     `json:"running"` // it has members
}

func (c *describeCommand) Run(ctx context.Context, o *operator) error {
	cluster, err := o.connect(ctx)
	if err != nil {
		return err
	}
	graphs, err := cluster.graphs(o.agent)
	if err != nil {
		return err
	}
	list := groupList{Agent: o.agent, Groups: []groupView{}}
	for _, g := range graphs {
		list.Groups = append(list.Groups, viewOf(g))
	}
	running, err := within(ctx, "the groups", func() (map[string]bool, error) { return cluster.running(graphs) })
	if err != nil {
		return err
	}
	for i := range list.Groups {
		list.Groups[i].Running = running[list.Groups[i].Group]
	}
	return o.print(list, func(t *columns) {
		for _, g := range list.Groups {
			t.line("group", g.Group, map[bool]string{true: "running", false: "no members"}[g.Running])
			for _, in := range g.Inputs {
				t.line("  reads", in)
			}
			for _, lookup := range g.Lookups {
				t.line("  looks up", lookup)
			}
			if g.Loop != "" {
				t.line("  loop", g.Loop)
			}
			t.line("  table", g.Table)
			for _, out := range g.Outputs {
				t.line("  writes", out)
			}
			t.line("  dead letters", g.DeadLetters)
		}
	})
}

// graphs returns the graphs of the capabilities that the agent has. What a configuration adds beyond them is not known here.
func (c *cluster) graphs(agent string) (graphs []*goka.GroupGraph, err error) {
	add := func(g *goka.GroupGraph, failed error) {
		if err = errors.Join(err, failed); failed == nil {
			graphs = append(graphs, g)
		}
	}
	config := turn.Config{
		Gates: c.has("gates"), Delivery: c.has("deliveries"), Events: c.has("events"), Costs: c.has("costs"),
		Latencies: c.has("latencies"), Channels: c.has("channels"),
	}
	if c.has("compaction") {
		config.Compaction = &turn.Compaction{}
	}
	if c.has("memoir") {
		config.Memoir = &turn.Memoir{}
	}
	add(turn.Graph(agent, config))
	for _, of := range []struct {
		capability string
		add        func()
	}{
		{"events", func() { add(fold.Graph(agent, fold.Config{Gates: c.has("gates")})) }},
		{"gates", func() {
			add(gate.Graph(agent, gate.Config{}))
			add(gate.GrantsGraph(agent, gate.Config{}))
		}},
		{"deliveries", func() {
			add(delivery.Graph(agent, delivery.Config{PeerCallbacks: c.has("peers")}))
			add(delivery.RoutesGraph(agent, delivery.Config{}))
		}},
		{"memoir", func() { add(memoir.Graph(agent, memoir.Config{})) }},
		{"costs", func() {
			add(cost.Graph(agent, cost.Config{}))
			add(cost.SpendingGraph(agent, cost.Config{}))
		}},
		{"latencies", func() { add(latency.Graph(agent, latency.Config{})) }},
		{"channels", func() {
			add(delegation.Graph(agent, delegation.Config{Agents: []string{agent}, Peers: c.has("peers")}))
		}},
		{"peers", func() {
			add(peer.Graph(agent, peer.Config{Settings: func() *peer.Settings { return nil }, Gates: c.has("gates")}))
			add(peer.ChainGraph(agent))
		}},
		{"crews", func() {
			groups, failed := crew.Graphs(agent, crew.Config{})
			err = errors.Join(err, failed)
			graphs = append(graphs, groups...)
		}},
	} {
		if c.has(of.capability) {
			of.add()
		}
	}
	return graphs, err
}

func viewOf(g *goka.GroupGraph) groupView {
	v := groupView{
		Group: string(g.Group()), Inputs: named(g.InputStreams()), Lookups: append(named(g.LookupTables()), named(g.JointTables())...),
		Outputs: []string{}, DeadLetters: letterTopic(g.Group()),
	}
	for _, out := range named(g.OutputStreams()) {
		if out != v.DeadLetters {
			v.Outputs = append(v.Outputs, out)
		}
	}
	if loop := g.LoopStream(); loop != nil {
		v.Loop = loop.Topic()
	}
	if t := g.GroupTable(); t != nil {
		v.Table = t.Topic()
	}
	return v
}

// named returns the topics of edges.
func named(edges goka.Edges) []string {
	names := []string{}
	for _, e := range edges {
		names = append(names, strings.Split(e.Topic(), ",")...)
	}
	return names
}

// running returns the groups that have members.
func (c *cluster) running(graphs []*goka.GroupGraph) (map[string]bool, error) {
	var names []string
	for _, g := range graphs {
		names = append(names, string(g.Group()))
	}
	described, err := c.admin.DescribeConsumerGroups(names)
	running := map[string]bool{}
	for _, d := range described {
		running[d.GroupId] = len(d.Members) > 0
	}
	return running, err
}
