package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/lovoo/goka"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/gate/gatehttp"
	"github.com/turntable-streams/turntable/processors/httpserver"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// agentName is the agent's name, with which the names of its topics begin.
const agentName = "cashier"

// run plays the payments. It returns when they are over or, with -serve, when ctx ends.
func run(ctx context.Context, s settings, out, errs io.Writer) error {
	level := zap.ErrorLevel
	if s.verbose {
		level = zap.InfoLevel
	}
	logger := zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig()), zapcore.Lock(zapcore.AddSync(errs)), level))
	if s.brokers == nil {
		broker, err := embedded.Start(embedded.Config{Logger: logger})
		if err != nil {
			return err
		}
		defer func() { _ = broker.Close() }()
		s.brokers = broker.Addrs()
	}
	listener, err := httpserver.Listen(s.addr)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // the server has closed it if it was started
	a, err := newAgent(s.brokers, policy(), &screen{out: out}, logger)
	if err != nil {
		return err
	}
	c := client{base: "http://" + listener.Addr().String(), http: &http.Client{}, screen: a.screen}
	defer c.http.CloseIdleConnections()
	return errors.Join(a.run(ctx, listener, func(ctx context.Context) error {
		for _, scene := range scenes() {
			if err := c.play(ctx, scene, a.answers); err != nil {
				return fmt.Errorf("%s: %w", scene.session, err)
			}
		}
		if s.serve {
			c.explain()
			<-ctx.Done()
		}
		return nil
	}), a.to.Close())
}

// agent is one agent with everything that it needs, in one process. Each part can run in a process of its own.
type agent struct {
	brokers []string
	catalog topics.Catalog
	screen  *screen
	logger  *zap.Logger

	groups  []*goka.GroupGraph
	to      *processors.KafkaPublisher
	model   *think.Worker
	tools   *tools.Worker
	index   *gatehttp.Index
	mux     *http.ServeMux
	answers *answers
}

func newAgent(brokers []string, p approval.Policy, s *screen, logger *zap.Logger) (*agent, error) {
	a := &agent{brokers: brokers, screen: s, logger: logger, mux: http.NewServeMux()}
	var err error
	if a.catalog, err = topics.For(agentName, topics.WithGates()); err != nil {
		return nil, err
	}
	turns, turnsErr := turn.Graph(agentName, turn.Config{Approval: &p})
	gates, gatesErr := gate.Graph(agentName, gate.Config{Policy: p})
	grants, grantsErr := gate.GrantsGraph(agentName, gate.Config{})
	if err := errors.Join(turnsErr, gatesErr, grantsErr); err != nil {
		return nil, err
	}
	a.groups = []*goka.GroupGraph{turns, gates, grants}
	if a.to, err = processors.NewPublisher(brokers, processors.WithLogger(logger)); err != nil {
		return nil, err
	}
	a.answers = newAnswers(a.catalog)
	var errs [5]error
	a.model, errs[0] = think.New(agentName, a.to, script(s), think.Config{Config: worker.Config{Logger: logger}})
	a.tools, errs[1] = tools.NewWorker(agentName, a.to, toolset(s), tools.Config{Config: worker.Config{Logger: logger}})
	a.index, errs[2] = gatehttp.NewIndex(agentName, gatehttp.Config{Door: auth.Door{Logger: logger}})
	chat, chatErr := turnhttp.New(agentName, a.to, turnhttp.Config{Door: auth.Door{Logger: logger}})
	decisions, decisionsErr := gatehttp.New(a.index, a.to, gatehttp.Config{})
	errs[3], errs[4] = chatErr, decisionsErr
	if err := errors.Join(errs[:]...); err != nil {
		return nil, errors.Join(err, a.to.Close())
	}
	a.mux.Handle(turnhttp.ChatPath, chat)
	a.mux.Handle(gatehttp.GatesPath, decisions)
	a.mux.Handle(gatehttp.GatesPath+"/", decisions)
	return a, nil
}

// run runs all parts, calls use when they are ready, and stops them when it returns or a part fails.
func (a *agent) run(ctx context.Context, listener net.Listener, use func(ctx context.Context) error) error {
	follower, err := a.answers.follower(a.brokers, processors.WithLogger(a.logger))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	running := make(chan struct{}, len(a.groups))
	for _, g := range a.groups {
		p, err := processors.New(a.brokers, g, processors.WithTopics(a.catalog), processors.WithLogger(a.logger),
			processors.WithMetrics(processors.Metrics{State: whenRunning(func() { running <- struct{}{} })}))
		if err != nil {
			return err
		}
		group.Go(func() error { return p.Run(ctx) })
	}
	group.Go(func() error {
		for range a.groups { // they create the topics that the other parts read
			select {
			case <-running:
			case <-ctx.Done():
				return nil
			}
		}
		group.Go(func() error { return follower.Run(ctx) })
		group.Go(func() error { return a.index.Run(ctx, a.brokers) })
		group.Go(func() error { return a.model.Run(ctx, a.brokers) })
		group.Go(func() error { return a.tools.Run(ctx, a.brokers) })
		group.Go(func() error { return httpserver.Serve(ctx, httpserver.New(a.mux), listener, 5*time.Second) })
		defer cancel()
		for _, ready := range []<-chan struct{}{follower.Ready(), a.index.Ready()} {
			select {
			case <-ready:
			case <-ctx.Done():
				return nil
			}
		}
		if err := use(ctx); ctx.Err() == nil {
			return err
		}
		return nil // stopped, or another part failed: that is the error
	})
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
