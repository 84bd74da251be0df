package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/fold/invoke"
	"github.com/turntable-streams/turntable/processors/httpserver"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// agent is the prefix of the topics' names.
const agent = "pilot"

// serve runs the pipeline and its door until ctx ends.
func serve(ctx context.Context, s settings, out io.Writer) error {
	play, err := newPlayer(s)
	if err != nil {
		return err
	}
	if s.brokers == nil {
		broker, err := embedded.Start(embedded.Config{Partitions: 3})
		if err != nil {
			return err
		}
		defer broker.Close()
		s.brokers = broker.Addrs()
	}
	listener, err := httpserver.Listen(s.addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	publisher, err := processors.NewPublisher(s.brokers)
	if err != nil {
		return err
	}
	defer publisher.Close()
	play.to = publisher

	// The turn processor opens a turn for a message and requests a think step. The model is a script here.
	catalog, err := topics.For(agent, topics.WithEvents())
	if err != nil {
		return err
	}
	play.topics = catalog
	graph, err := turn.Graph(agent, turn.Config{})
	if err != nil {
		return err
	}
	turns, err := processors.New(s.brokers, graph, processors.WithTopics(catalog))
	if err != nil {
		return err
	}
	// The fold group writes the same events as batch messages to a topic.
	if graph, err = fold.Graph(agent, fold.Config{}); err != nil {
		return err
	}
	batches, err := processors.New(s.brokers, graph, processors.WithTopics(catalog))
	if err != nil {
		return err
	}
	worker, err := think.New(agent, publisher, play, think.Config{})
	if err != nil {
		return err
	}
	// The door writes a request as a message and answers with the turn's events.
	pipeline, err := invoke.NewPipeline(agent, s.brokers, publisher, invoke.PipelineConfig{})
	if err != nil {
		return err
	}
	door, err := invoke.New(pipeline, invoke.Config{})
	if err != nil {
		return err
	}
	payments, components, err := newDesk(s.brokers, publisher)
	if err != nil {
		return err
	}
	paying, err := invoke.New(payments, invoke.Config{})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/invoke", door)
	mux.Handle("/agent/v0/invoke", door)
	mux.Handle("/desk/invoke", paying)
	components = append(components, turns.Run, batches.Run, pipeline.Run, payments.Run,
		func(ctx context.Context) error { return worker.Run(ctx, s.brokers) })
	return runAll(ctx, listener, mux, out, []<-chan struct{}{pipeline.Ready(), payments.Ready()}, components)
}

// runAll runs the components and the HTTP server until ctx ends or one of them fails. It serves requests once all of ready are
// closed, and prints the address then.
func runAll(
	ctx context.Context, listener net.Listener, doors http.Handler, out io.Writer, ready []<-chan struct{},
	components []func(context.Context) error,
) error {
	server := httpserver.New(doors)

	tasks, ctx := errgroup.WithContext(ctx)
	server.BaseContext = func(net.Listener) context.Context { return ctx } // streams end when the service does
	for _, run := range components {
		tasks.Go(func() error { return run(ctx) })
	}
	tasks.Go(func() error {
		for _, r := range ready {
			select {
			case <-r:
			case <-ctx.Done():
				return nil
			}
		}
		fmt.Fprintf(out, "invoke: http://%s/invoke\n", listener.Addr())
		return httpserver.Serve(ctx, server, listener, 5*time.Second)
	})
	return tasks.Wait()
}
