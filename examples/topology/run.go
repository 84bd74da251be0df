package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors/embedded"
)

// run runs the program with the settings. It returns nil when ctx ends.
func run(ctx context.Context, s settings, in io.Reader, out, errs io.Writer) error {
	logger := newLogger(errs, s.verbose)
	broker, err := connect(&s, logger)
	if err != nil {
		return err
	}
	defer broker.Close()
	if s.inspect != "" {
		return inspect(ctx, s.brokers, s.inspect, out)
	}
	p := pipeline{settings: s, logger: logger}
	if err := p.open(ctx); err != nil {
		return err
	}
	before, err := readBacklog(ctx, s)
	if err != nil {
		return err
	}
	screen := newScreen(out)
	recorder, err := newRecorder(s.brokers, before.ends, s.session, screen.record)
	if err != nil {
		return err
	}
	user := newAsker(recorder, screen, time.Now, before.exchanges)
	for _, g := range before.gates {
		recorder.gates <- g
	}
	if !s.once || s.approve {
		user.lines = readLines(ctx, in)
	}
	screen.note(grey, "broker", "%s", strings.Join(s.brokers, ","))
	if err := p.run(ctx, recorder, func(ctx context.Context) error {
		err := user.resume(ctx)
		if err == nil && s.memory && len(before.exchanges) == 0 {
			err = user.rememberAcrossSessions(ctx)
		}
		if err == nil && !s.once {
			err = user.readOn(ctx, in)
		}
		return err
	}); err != nil {
		return err
	}
	return user.failed
}

// connect starts the embedded broker if no addresses are set, and sets its addresses. The result must be closed after all
// its clients.
func connect(s *settings, logger *zap.Logger) (io.Closer, error) {
	if s.brokers != nil {
		return io.NopCloser(nil), nil
	}
	c := embedded.Config{Logger: logger}
	if s.data != "" {
		c.Directory = filepath.Join(s.data, "broker")
		if s.inspect != "" {
			if _, err := os.Stat(c.Directory); err != nil {
				return nil, fmt.Errorf("inspect: %w", err) // inspecting must not create the directory
			}
		}
	}
	broker, err := embedded.Start(c)
	if err != nil {
		return nil, err
	}
	s.brokers = broker.Addrs()
	return broker, nil
}

func newLogger(w io.Writer, verbose bool) *zap.Logger {
	level := zap.WarnLevel
	if verbose {
		level = zap.InfoLevel
	}
	encoder := zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), level))
}

// roles are the programs outside of the turn processors.
func (p pipeline) roles(now func() time.Time) []role {
	all := []role{
		think(orchestrator, orchestrate, now), tools(orchestrator, now), dispatch(orchestrator, worker, now),
		think(worker, work, now), tools(worker, now), deliver(worker, now),
	}
	if p.memory {
		all = append(all, remember(orchestrator))
	}
	return all
}

// run runs all parts until use returns or one of them fails, and then stops them.
func (p pipeline) run(ctx context.Context, recorder *recorder, use func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	var starting sync.WaitGroup
	group.Go(func() error { return recorder.run(ctx) })
	for _, r := range p.roles(time.Now) {
		starting.Add(1)
		ready := sync.OnceFunc(starting.Done)
		group.Go(func() error {
			defer ready()
			return r.run(ctx, p.brokers, p.instance, ready, p.logger)
		})
	}
	graphs, err := p.graphs()
	if err != nil {
		return err
	}
	for _, graph := range graphs {
		starting.Add(1)
		ready := sync.OnceFunc(starting.Done)
		group.Go(func() error {
			defer ready()
			if err := p.process(ctx, graph, ready); err != nil {
				return fmt.Errorf("%s: %w", graph.Group(), err)
			}
			return nil
		})
	}
	group.Go(func() error {
		defer cancel()
		starting.Wait()
		if err := use(ctx); ctx.Err() == nil {
			return err
		}
		return nil // stopped, or something else failed: that is the error
	})
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
