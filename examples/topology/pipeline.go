package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/memoir"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// pipeline is the processors of the two agents.
type pipeline struct {
	settings
	logger *zap.Logger
}

// open creates missing topics, because the recorder and the roles read them before the processors start.
func (p pipeline) open(ctx context.Context) error {
	for _, agent := range []string{orchestrator, worker} {
		var opts []topics.CatalogOption
		if agent == orchestrator && p.approve {
			opts = append(opts, topics.WithGates())
		}
		if agent == orchestrator && p.memory {
			opts = append(opts, topics.WithMemoir())
		}
		catalog, err := topics.For(agent, opts...)
		if err != nil {
			return err
		}
		if err := topics.EnsureCluster(ctx, p.brokers, kafka.Config(), catalog); err != nil {
			return err
		}
	}
	return nil
}

// approvals lets the orchestrator call every tool but delegate_task, for which it must ask.
func approvals() approval.Policy {
	return approval.Policy{Default: approval.Allow, Rules: []approval.Rule{
		{Tool: delegateTask, Effect: approval.Ask, Message: "May the orchestrator delegate this task?"},
	}}
}

// graphs returns the groups of the two agents.
func (p pipeline) graphs() ([]*goka.GroupGraph, error) {
	var errs []error
	var all []*goka.GroupGraph
	add := func(g *goka.GroupGraph, err error) { all, errs = append(all, g), append(errs, err) }
	var config turn.Config
	if p.approve {
		config.Approval = new(approvals())
		add(gate.Graph(orchestrator, gate.Config{Policy: approvals()}))
		add(gate.GrantsGraph(orchestrator, gate.Config{}))
	}
	if p.memory {
		config.Memoir = &turn.Memoir{}
		add(memoir.Graph(orchestrator, memoir.Config{}))
	}
	add(turn.Graph(orchestrator, config))
	add(turn.Graph(worker, turn.Config{}))
	return all, errors.Join(errs...)
}

// process runs a group until ctx ends. It calls ready when records flow.
func (p pipeline) process(ctx context.Context, graph *goka.GroupGraph, ready func()) error {
	processor, err := processors.New(p.brokers, graph,
		processors.WithInstance(p.instance),
		processors.WithStorage(p.storage(graph.Group())),
		processors.WithLogger(p.logger),
		processors.WithMetrics(processors.Metrics{State: func(s processors.State) {
			if s == processors.Running {
				ready()
			}
		}}),
	)
	if err != nil {
		return err
	}
	return processor.Run(ctx)
}

func (p pipeline) storage(group goka.Group) processors.Storage {
	if p.data == "" {
		return processors.Memory()
	}
	return processors.LevelDB(filepath.Join(p.data, "tables", string(group)))
}
