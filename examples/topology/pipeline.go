package main

import (
	"context"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// pipeline is the two agents' turn processors.
type pipeline struct {
	settings
	logger *zap.Logger
}

// open creates missing topics, because the recorder and the roles read them before the processors start.
func (p pipeline) open(ctx context.Context) error {
	for _, agent := range []string{orchestrator, worker} {
		catalog, err := topics.For(agent)
		if err != nil {
			return err
		}
		if err := topics.EnsureCluster(ctx, p.brokers, kafka.Config(), catalog); err != nil {
			return err
		}
	}
	return nil
}

// turn runs the turn processor of an agent until ctx ends. It calls ready when records flow.
func (p pipeline) turn(ctx context.Context, agent string, ready func()) error {
	graph, err := turn.Graph(agent)
	if err != nil {
		return err
	}
	processor, err := processors.New(p.brokers, graph,
		processors.WithInstance(p.instance),
		processors.WithStorage(p.storage(agent)),
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

func (p pipeline) storage(agent string) processors.Storage {
	if p.data == "" {
		return processors.Memory()
	}
	return processors.LevelDB(filepath.Join(p.data, "tables", agent))
}
