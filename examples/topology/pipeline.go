package main

import (
	"context"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/unit"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// pipeline is the two agents' turn processors.
type pipeline struct {
	settings
	logger *zap.Logger
}

// open creates what topics are missing.
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
	cfg := unit.Config{
		Brokers: p.brokers, Graph: graph, Instance: p.instance, Sarama: kafka.Config, Logger: p.logger,
		Hooks: unit.Hooks{State: func(s unit.State) {
			if s == unit.Running {
				ready()
			}
		}},
	}
	if p.data != "" {
		cfg.StorageDir = filepath.Join(p.data, "tables", agent)
	}
	u, err := unit.New(cfg)
	if err != nil {
		return err
	}
	return u.Run(ctx)
}
