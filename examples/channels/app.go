package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/lovoo/goka"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/delegation"
	"github.com/turntable-streams/turntable/processors/delegation/delegationhttp"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/httpserver"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// app is the two agents with everything that they need, in one process. Each part can run in a process of its own.
type app struct {
	flags  flags
	logger *zap.Logger
	live   *channel.SettingsFile
	to     *processors.KafkaPublisher
	groups []appGroup
	// parts run until their context ends.
	parts []func(ctx context.Context) error
	mux   *http.ServeMux
	close []func()
}

// appGroup is a group and the topics that it needs.
type appGroup struct {
	graph   *goka.GroupGraph
	catalog topics.Catalog
}

func newLogger(errs io.Writer, verbose bool) *zap.Logger {
	level := zap.ErrorLevel
	if verbose {
		level = zap.InfoLevel
	}
	encoder := zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(errs)), level))
}

// runApp runs the app until ctx ends or a part fails. When it is ready, it prints a line with its address.
func runApp(ctx context.Context, f flags, out, errs io.Writer) (err error) {
	logger := newLogger(errs, f.verbose)
	if f.brokers == nil {
		broker, err := embedded.Start(embedded.Config{Logger: logger})
		if err != nil {
			return err
		}
		defer func() { _ = broker.Close() }()
		f.brokers = broker.Addrs()
	}
	a, err := newApp(f, logger)
	if err != nil {
		return err
	}
	defer func() {
		for _, c := range a.close {
			c()
		}
		err = errors.Join(err, a.to.Close())
	}()
	listener, err := httpserver.Listen(f.addr)
	if err != nil {
		return err
	}
	return a.run(ctx, listener, out)
}

func newApp(f flags, logger *zap.Logger) (a *app, err error) {
	a = &app{flags: f, logger: logger, mux: http.NewServeMux()}
	if a.live, err = channel.OpenSettings(f.settings, logger); err != nil {
		return nil, err
	}
	to, err := processors.NewPublisher(f.brokers, processors.WithLogger(logger))
	if err != nil {
		return nil, err
	}
	a.to = to
	defer func() {
		if err != nil {
			err = errors.Join(err, to.Close())
		}
	}()
	talking, err := topics.For(concierge, topics.WithChannels(), topics.WithDeliveries(), topics.WithGates())
	if err != nil {
		return nil, err
	}
	working, err := topics.For(workspace, topics.WithChannels())
	if err != nil {
		return nil, err
	}
	if err := a.addGroups(talking, working); err != nil {
		return nil, err
	}
	if err := a.addWorkers(); err != nil {
		return nil, err
	}
	receiver, err := channel.NewBridge(a.live.Settings, a.to, []topics.Catalog{talking}, channel.BridgeConfig{Logger: logger})
	if err != nil {
		return nil, err
	}
	accounts, err := a.addAdapters(receiver)
	if err != nil {
		return nil, err
	}
	if err := a.addSink(accounts); err != nil {
		return nil, err
	}
	a.parts = append(a.parts, channel.NewChecks(accounts, channel.CheckConfig{Logger: logger}).Run) // a wrong token would be silent
	return a, a.addDoor()
}

// policy asks before money is spent.
func policy() approval.Policy {
	return approval.Policy{
		ReadOnly: []string{delegation.SendTool, delegation.CancelTool},
		Rules:    []approval.Rule{{Tool: "pay", Effect: approval.Ask, Message: "May this be paid?"}},
	}
}

func (a *app) addGroups(talking, working topics.Catalog) error {
	delegations := delegation.Config{Agents: []string{concierge, workspace}, Prompts: func(o topics.Origin) string {
		account, _ := a.live.Settings().Account(o.Channel, o.Account)
		return account.Prompt
	}}
	var errs []error
	add := func(c topics.Catalog) func(*goka.GroupGraph, error) {
		return func(g *goka.GroupGraph, err error) {
			errs = append(errs, err)
			a.groups = append(a.groups, appGroup{g, c})
		}
	}
	add(talking)(turn.Graph(concierge, turn.Config{Channels: true, Approval: new(policy())}))
	add(talking)(delegation.Graph(concierge, delegations))
	add(talking)(gate.Graph(concierge, gate.Config{Channels: true, Policy: policy()}))
	add(talking)(gate.GrantsGraph(concierge, gate.Config{}))
	add(talking)(delivery.Graph(concierge, delivery.Config{Channels: true}))
	add(talking)(delivery.RoutesGraph(concierge, delivery.Config{}))
	add(working)(turn.Graph(workspace, turn.Config{Channels: true}))
	add(working)(delegation.Graph(workspace, delegations))
	return errors.Join(errs...)
}

func (a *app) addWorkers() error {
	for agent, model := range map[string]think.Func{concierge: converses, workspace: works} {
		m, err := think.New(agent, a.to, model, think.Config{Config: worker.Config{Logger: a.logger}})
		if err != nil {
			return err
		}
		a.parts = append(a.parts, func(ctx context.Context) error { return m.Run(ctx, a.flags.brokers) })
	}
	for agent, functions := range map[string]map[string]tools.Func{
		concierge: {"pay": payTool}, workspace: {"work": workTool(os.Getenv(gateVariable))},
	} {
		t, err := tools.NewWorker(agent, a.to, functions, tools.Config{IgnoreUnknown: true, Config: worker.Config{Logger: a.logger}})
		if err != nil {
			return err
		}
		a.parts = append(a.parts, func(ctx context.Context) error { return t.Run(ctx, a.flags.brokers) })
	}
	return nil
}

func (a *app) addSink(accounts []channel.AccountAdapter) error {
	posts, err := channel.NewTransport(concierge, a.live.Settings, accounts, channel.TransportConfig{})
	if err != nil {
		return err
	}
	s, err := sink.New(concierge, a.to, sink.Config{
		Transports: map[string]sink.Transport{topics.KindChannel: posts}, Config: worker.Config{Logger: a.logger},
	})
	if err != nil {
		return err
	}
	a.parts = append(a.parts, func(ctx context.Context) error { return s.Run(ctx, a.flags.brokers) })
	return nil
}

func (a *app) addDoor() error {
	index, err := delegationhttp.NewIndex(concierge, delegationhttp.Config{Door: auth.Door{Logger: a.logger}})
	if err != nil {
		return err
	}
	d, err := delegationhttp.New(index, delegationhttp.Config{})
	if err != nil {
		return err
	}
	a.mux.Handle(delegationhttp.DelegationsPath, d)
	a.mux.Handle(delegationhttp.DelegationsPath+"/", d)
	a.parts = append(a.parts, func(ctx context.Context) error { return index.Run(ctx, a.flags.brokers) })
	return nil
}

// run runs all parts until ctx ends or one of them fails.
func (a *app) run(ctx context.Context, listener net.Listener, out io.Writer) error {
	defer func() { _ = listener.Close() }() // the server has closed it if it was started
	group, ctx := errgroup.WithContext(ctx)
	running := make(chan struct{}, len(a.groups))
	for _, g := range a.groups {
		p, err := processors.New(a.flags.brokers, g.graph, processors.WithTopics(g.catalog), processors.WithLogger(a.logger),
			processors.WithStorage(a.storage(g.graph)),
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
		for _, part := range a.parts {
			group.Go(func() error { return part(ctx) })
		}
		server := httpserver.New(httpserver.WithTrustedProxies(a.mux, a.flags.proxies...))
		group.Go(func() error {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
		fmt.Fprintln(out, readyPrefix+listener.Addr().String())
		<-ctx.Done()
		return server.Close()
	})
	return group.Wait()
}

func (a *app) storage(g *goka.GroupGraph) processors.Storage {
	if a.flags.dir == "" {
		return processors.Memory()
	}
	return processors.LevelDB(filepath.Join(a.flags.dir, strings.ReplaceAll(string(g.Group()), "/", "_")))
}
