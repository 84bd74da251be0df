package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/lovoo/goka"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/httpserver"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/peer/peerhttp"
	"github.com/turntable-streams/turntable/processors/peer/transport"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// instanceRole is the command-line argument of the process of an instance.
const instanceRole = "instance"

// agentName is the agent of every instance. The names of its topics begin with it.
const agentName = "clerk"

func catalog() (topics.Catalog, error) {
	return topics.For(agentName, topics.WithGates(), topics.WithPeers())
}

// runInstance runs one instance until ctx ends. It prints the addresses of its broker when it is ready.
func runInstance(ctx context.Context, args []string, out, errs io.Writer) error {
	flags := flag.NewFlagSet("peers "+instanceRole, flag.ContinueOnError)
	flags.SetOutput(errs)
	verbose := flags.Bool("v", false, "log the activity of the instance")
	if err := flags.Parse(args); err != nil {
		return err
	}
	level := zap.ErrorLevel
	if *verbose {
		level = zap.InfoLevel
	}
	encoder := zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig())
	i, err := instanceFrom(zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(errs)), level)))
	if err != nil {
		return err
	}
	broker, err := embedded.Start(embedded.Config{Logger: i.logger})
	if err != nil {
		return err
	}
	i.brokers = broker.Addrs()
	return errors.Join(i.run(ctx, func() {
		fmt.Fprintf(out, "%s%s\n", readyPrefix, strings.Join(i.brokers, ","))
	}), broker.Close())
}

// instance is one agent with everything that it needs to work for peers and to let them work. Each part can run in a process
// of its own.
type instance struct {
	address  string
	brokers  []string
	invoices int
	settings *peer.SettingsFile
	keys     *auth.APIKeys
	logger   *zap.Logger
}

// graphs returns the groups: turns, gates, tasks of peers, and the audit.
func (i *instance) graphs() ([]*goka.GroupGraph, error) {
	p := policy()
	turns, turnsErr := turn.Graph(agentName, turn.Config{Approval: &p})
	gates, gatesErr := gate.Graph(agentName, gate.Config{Policy: p})
	grants, grantsErr := gate.GrantsGraph(agentName, gate.Config{})
	config := peer.Config{
		Settings: i.settings.Settings, Gates: true,
		TaskTime: 4 * time.Minute, // less than the turn waits for a tool
		// Short waits, so that the example takes seconds.
		RetryInitial: 200 * time.Millisecond, RetryLongest: 800 * time.Millisecond, GateGrace: 200 * time.Millisecond,
	}
	tasks, tasksErr := peer.Graph(agentName, config)
	chain, chainErr := peer.ChainGraph(agentName)
	return []*goka.GroupGraph{turns, gates, grants, tasks, chain},
		errors.Join(turnsErr, gatesErr, grantsErr, tasksErr, chainErr)
}

// workers are the parts of an instance that are no groups.
type workers struct {
	runs  []func(ctx context.Context) error // each until its context ends
	ready <-chan struct{}                   // closed when the doors can answer
	mux   *http.ServeMux
}

// workers returns what runs beside the groups: the model, the tools, the sink that sends tasks to peers, and the doors.
func (i *instance) workers(to *processors.KafkaPublisher, requests *transport.Transport) (*workers, error) {
	w := &workers{mux: http.NewServeMux()}
	logger := i.logger
	model, modelErr := think.New(agentName, to, think.Func(script), think.Config{Config: worker.Config{Logger: logger}})
	// The group of package peer answers the calls of delegate_to_peer.
	own, ownErr := tools.NewWorker(agentName, to, toolset(i.invoices), tools.Config{
		IgnoreUnknown: true, Config: worker.Config{Logger: logger},
	})
	sender, senderErr := sink.New(agentName, to, sink.Config{
		Peers: true, Transports: map[string]sink.Transport{transport.Kind: requests}, Config: worker.Config{Logger: logger},
	})
	door := auth.Door{Authenticate: i.keys.Authenticate, Logger: logger}
	chat, chatErr := turnhttp.New(agentName, to, turnhttp.Config{Door: door})
	replies, repliesErr := peerhttp.NewReplies(agentName, peerhttp.Config{Door: door})
	if err := errors.Join(modelErr, ownErr, senderErr, chatErr, repliesErr); err != nil {
		return nil, err
	}
	peers, err := peerhttp.New(replies, to, i.settings.Settings, peerhttp.Config{Door: door})
	if err != nil {
		return nil, err
	}
	w.ready = replies.Ready()
	w.mux.Handle(turnhttp.ChatPath, chat)
	w.mux.Handle("/", peers)
	w.runs = []func(ctx context.Context) error{
		func(ctx context.Context) error { return model.Run(ctx, i.brokers) },
		func(ctx context.Context) error { return own.Run(ctx, i.brokers) },
		func(ctx context.Context) error { return sender.Run(ctx, i.brokers) },
		func(ctx context.Context) error { return requests.Run(ctx, agentName, i.brokers) },
		func(ctx context.Context) error { return replies.Run(ctx, i.brokers) },
	}
	return w, nil
}

// run runs all parts until ctx ends or a part fails, and then stops them. It calls ready when the doors are open.
func (i *instance) run(ctx context.Context, ready func()) error {
	graphs, err := i.graphs()
	if err != nil {
		return err
	}
	c, err := catalog()
	if err != nil {
		return err
	}
	to, err := processors.NewPublisher(i.brokers, processors.WithLogger(i.logger))
	if err != nil {
		return err
	}
	requests := transport.New(i.settings.Settings, transport.Config{})
	defer requests.Close()
	w, err := i.workers(to, requests)
	if err != nil {
		return errors.Join(err, to.Close())
	}
	group, ctx := errgroup.WithContext(ctx)
	running := make(chan struct{}, len(graphs))
	for _, g := range graphs {
		p, err := processors.New(i.brokers, g, processors.WithTopics(c), processors.WithLogger(i.logger),
			processors.WithMetrics(processors.Metrics{State: whenRunning(func() { running <- struct{}{} })}))
		group.Go(func() error {
			if err != nil {
				return err
			}
			return p.Run(ctx)
		})
	}
	group.Go(func() error {
		for range graphs { // they create the topics that the other parts read
			select {
			case <-running:
			case <-ctx.Done():
				return nil
			}
		}
		for _, run := range w.runs {
			group.Go(func() error { return run(ctx) })
		}
		select {
		case <-w.ready:
		case <-ctx.Done():
			return nil
		}
		listener, err := httpserver.Listen(i.address)
		if err != nil {
			return err
		}
		ready()
		return httpserver.Serve(ctx, httpserver.New(w.mux), listener, 5*time.Second)
	})
	return errors.Join(group.Wait(), to.Close())
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
