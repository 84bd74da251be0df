package main

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew"
	"github.com/turntable-streams/turntable/processors/crew/host"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/topics"
)

// workshop is the name with which the names of the topics begin.
const workshop = "workshop"

func newLogger(errs io.Writer, verbose bool) *zap.Logger {
	level := zap.ErrorLevel
	if verbose {
		level = zap.InfoLevel
	}
	encoder := zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(errs)), level))
}

func catalogOf() (topics.Catalog, error) {
	return topics.For(workshop, topics.WithCrews(), topics.WithGates())
}

// runProcessors runs the groups of the crews, and those of the gates at which a person decides, until ctx ends.
func runProcessors(ctx context.Context, s childSettings, logger *zap.Logger, ready func()) error {
	catalog, err := catalogOf()
	if err != nil {
		return err
	}
	patience := time.Duration(s.Patience) * time.Second
	graphs, crewsErr := crew.Graphs(workshop, crew.Config{PermissionTimeout: patience})
	gates, gatesErr := gate.Graph(workshop, gate.Config{})
	grants, grantsErr := gate.GrantsGraph(workshop, gate.Config{})
	if err := errors.Join(crewsErr, gatesErr, grantsErr); err != nil {
		return err
	}
	graphs = append(graphs, gates, grants)
	var running sync.WaitGroup
	running.Add(len(graphs))
	group, ctx := errgroup.WithContext(ctx)
	for _, g := range graphs {
		p, err := processors.New(s.Brokers, g, processors.WithTopics(catalog), processors.WithLogger(logger),
			processors.WithMetrics(processors.Metrics{State: whenRunning(running.Done)}))
		if err != nil {
			return err
		}
		group.Go(func() error { return p.Run(ctx) })
	}
	go func() {
		running.Wait()
		ready()
	}()
	return group.Wait()
}

// whenRunning returns a function that calls done when a processor runs for the first time.
func whenRunning(done func()) func(processors.State) {
	once := sync.OnceFunc(done)
	return func(s processors.State) {
		if s == processors.Running {
			once()
		}
	}
}

// runHost runs the agents' host until ctx ends.
func runHost(ctx context.Context, s childSettings, logger *zap.Logger, ready func()) error {
	h, err := host.New(host.Config{
		Agent: workshop, Name: s.Host, Brokers: s.Brokers, Commands: s.Commands, Dirs: []string{s.Dir}, Logger: logger,
	})
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-h.Ready():
			ready()
		case <-ctx.Done():
		}
	}()
	return h.Run(ctx)
}
