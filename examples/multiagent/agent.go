package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lovoo/goka"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/httpserver"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
	"github.com/turntable-streams/turntable/topics"
)

// agent runs everything of an agent except its model and its tools: turns, deliveries, HTTP doors and the sink. Orchestrator
// and worker are the same program. It knows no other agent, only services that may be called back.
type agent struct {
	name     string
	brokers  []string
	services sink.Services
	secrets  []string // that sign callback tokens
	logger   *zap.Logger

	client   []processors.Option                        // for everything that connects to Kafka
	group    func(group goka.Group) []processors.Option // for one group, such as its storage; nil for none
	turn     turn.Config
	delivery delivery.Config
	clock    processors.Clock // of the doors; nil: the system's
	sink     sink.Config
}

// run runs the agent until ctx ends or a component fails, and then stops all components. It closes the listener. It calls
// ready once, when all groups are running; ready must not block.
func (a agent) run(ctx context.Context, listener net.Listener, ready func()) error {
	defer func() { _ = listener.Close() }() // the server has closed it if it was started
	graphs, err := a.graphs()
	if err != nil {
		return err
	}
	to, err := processors.NewPublisher(a.brokers, a.client...)
	if err != nil {
		return err
	}
	callbacks := sink.NewHTTP(a.services)
	defer callbacks.Close()
	config := a.sink
	config.Transports, config.Logger = map[string]sink.Transport{topics.KindHTTP: callbacks}, a.logger
	deliver, err := sink.New(a.name, to, config)
	if err != nil {
		return err
	}
	doors, err := turnhttp.New(a.name, to, turnhttp.Config{
		Door: auth.Door{Clock: a.clock, Logger: a.logger}, CallbackSecrets: a.secrets, CallbackServices: a.services.Known,
	})
	if err != nil {
		return err
	}
	running := make([]*processors.Processor, len(graphs))
	var starting atomic.Int64
	starting.Store(int64(len(graphs)))
	started := func() {
		if starting.Add(-1) == 0 {
			ready()
		}
	}
	for i, graph := range graphs {
		if running[i], err = a.processor(graph, sync.OnceFunc(started)); err != nil {
			return err
		}
	}

	group, ctx := errgroup.WithContext(ctx)
	for _, p := range running {
		group.Go(func() error { return p.Run(ctx) })
	}
	group.Go(func() error { return deliver.Run(ctx, a.brokers, a.client...) })
	group.Go(func() error {
		return httpserver.Serve(ctx, httpserver.New(mux(doors, running)), listener, shutdownTimeout)
	})
	return errors.Join(group.Wait(), to.Close())
}

// graphs returns the agent's groups: turns, deliveries, and the routes of the deliveries.
func (a agent) graphs() ([]*goka.GroupGraph, error) {
	a.turn.Delivery, a.turn.Compaction = true, cmp.Or(a.turn.Compaction, &turn.Compaction{})
	turns, turnErr := turn.Graph(a.name, a.turn)
	deliveries, deliveryErr := delivery.Graph(a.name, a.delivery)
	routes, routesErr := delivery.RoutesGraph(a.name, a.delivery)
	return []*goka.GroupGraph{turns, deliveries, routes}, errors.Join(turnErr, deliveryErr, routesErr)
}

func (a agent) processor(graph *goka.GroupGraph, started func()) (*processors.Processor, error) {
	catalog, err := topics.For(a.name, topics.WithDeliveries(), topics.WithCompaction())
	if err != nil {
		return nil, err
	}
	options := append([]processors.Option{
		processors.WithTopics(catalog), processors.WithLogger(a.logger),
		processors.WithMetrics(processors.Metrics{State: func(s processors.State) {
			if s == processors.Running {
				started()
			}
		}}),
	}, a.client...)
	if a.group != nil {
		options = append(options, a.group(graph.Group())...)
	}
	return processors.New(a.brokers, graph, options...)
}

// mux returns the agent's HTTP handler: the doors, and /healthz.
func mux(doors http.Handler, running []*processors.Processor) http.Handler {
	m := http.NewServeMux()
	m.Handle("/api/", doors)
	m.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		for _, p := range running {
			if state := p.Health().State; state != processors.Running {
				http.Error(w, string(state), http.StatusServiceUnavailable)
				return
			}
		}
		fmt.Fprintln(w, processors.Running)
	})
	return m
}

// shutdownTimeout is how long requests may continue when the agent stops.
const shutdownTimeout = 5 * time.Second
