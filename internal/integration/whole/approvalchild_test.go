package whole

import (
	"context"
	"time"

	"github.com/lovoo/goka"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

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

// runApprovals runs the turns and the gates of an agent in one process until it is killed.
func runApprovals(ctx context.Context, c child) error {
	catalog := must(topics.For(c.Agent, topics.WithGates()))
	group, ctx := errgroup.WithContext(ctx)
	for name, graph := range map[string]*goka.GroupGraph{
		"turns": must(turn.Graph(c.Agent, turn.Config{Approval: new(approvals())})), "gates": must(gate.Graph(c.Agent, gate.Config{Policy: approvals()})),
	} {
		c.Instance = name
		if err := c.serve(ctx, group, catalog, graph, kill.Logger(zap.WarnLevel), processors.WithStorage(processors.Memory())); err != nil {
			return err
		}
	}
	return group.Wait()
}
