package whole

import (
	"context"
	"time"

	"github.com/lovoo/goka"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

const approvalPartitions = 2

// approvals asks for everything but looking. No one answers for the tool wait.
func approvals() approval.Policy {
	return approval.Policy{
		ReadOnly: []string{"look"}, TTL: time.Hour,
		Rules: []approval.Rule{
			{Tool: "pay", Effect: approval.Ask, Edit: true},
			{Tool: "wait", Effect: approval.Ask, TTL: time.Second},
			{Tool: "delete", Effect: approval.Deny, Message: "nothing is deleted"},
		},
	}
}

func approvalOptions(catalog topics.Catalog, instance string, guarantee processors.Guarantee) []processors.Option {
	return []processors.Option{
		processors.WithTopics(catalog), processors.WithPartitions(approvalPartitions), processors.WithInstance(instance),
		processors.WithGuarantee(guarantee), processors.WithTick(10 * time.Millisecond),
	}
}

// runApprovals runs the turns and the gates of an agent in one process until it is killed.
func runApprovals(ctx context.Context, c child) error {
	agent := c.Agent
	catalog, err := topics.For(agent, topics.WithGates())
	if err != nil {
		return err
	}
	turns, err := turn.Graph(agent, turn.WithApproval(approvals()))
	if err != nil {
		return err
	}
	gates, err := gate.Graph(agent, gate.WithPolicy(approvals()))
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for name, graph := range map[string]*goka.GroupGraph{"turns": turns, "gates": gates} {
		p, err := processors.New(c.Brokers, graph, approvalOptions(catalog, name, c.Guarantee)...)
		if err != nil {
			return err
		}
		group.Go(func() error { return p.Run(ctx) })
	}
	return group.Wait()
}
