package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors"
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
	"github.com/turntable-streams/turntable/topics"
)

// describeCommand describes the groups of the agent, and the programs beside them.
type describeCommand struct {
	Mermaid     bool   `xor:"form" help:"Print a Mermaid flowchart of the groups."`
	ACLs        string `name:"acls" xor:"form" placeholder:"PRINCIPAL" help:"Print the commands that give User:name, for example, what processes of all groups and programs need."`
	ExactlyOnce bool   `help:"With --acls and -o json: the groups have the guarantee exactly_once."`
}

// groupList is the JSON of the command describe: that of processors.Topology, with what the brokers say.
type groupList struct {
	Agent  string      `json:"agent"`
	Groups []groupView `json:"groups"`

	Programs []topics.Program           `json:"programs"`
	Topics   []processors.TopologyTopic `json:"topics"`
	ACLs     []processors.ACL           `json:"acls"`
}

type groupView struct {
	processors.TopologyGroup
	Running bool `json:"running"` // it has members
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
	groups := processors.Describe(graphs...)
	all := groups.WithCatalog(cluster.catalog, cluster.catalog.Programs()...)
	list := groupList{
		Agent: o.agent, Groups: []groupView{}, Programs: all.Programs, Topics: all.Topics,
		ACLs: all.ACLs(processors.ACLConfig{ExactlyOnce: c.ExactlyOnce}),
	}
	if c.Mermaid || c.ACLs != "" {
		text := groups.Mermaid()
		if c.ACLs != "" {
			text = strings.Join(processors.ACLCommands(c.ACLs, list.ACLs), "\n") + "\n"
		}
		_, err := io.WriteString(o.out, text)
		return err
	}
	running, err := within(ctx, "the groups", func() (map[string]bool, error) { return cluster.running(graphs) })
	if err != nil {
		return err
	}
	for _, g := range all.Groups {
		list.Groups = append(list.Groups, groupView{g, running[g.Group]})
	}
	return o.print(list, func(t *columns) {
		each := func(what string, names ...string) {
			for _, name := range names {
				if name != "" {
					t.line(what, name)
				}
			}
		}
		for _, g := range list.Groups {
			t.line("group", g.Group, map[bool]string{true: "running", false: "no members"}[g.Running])
			each("  reads", g.Inputs...)
			each("  looks up", append(g.Lookups, g.Joins...)...)
			each("  loop", g.Loop)
			each("  table", g.Table)
			each("  writes", g.Outputs...)
			each("  dead letters", g.DeadLetters)
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
