// Embed is an existing HTTP service that also runs the turn processor of its agent in its process. The processor starts
// with the service, is part of its health check, and is drained before the process ends.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/httpserver"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	listener, err := httpserver.Listen("127.0.0.1:8080")
	if err == nil {
		err = serve(ctx, listener, []string{"localhost:9092"}, "support")
	}
	if err != nil {
		log.Fatal(err)
	}
}

// serve answers requests and runs the agent's turns until ctx ends, or until either of them fails.
func serve(ctx context.Context, listener net.Listener, brokers []string, agent string) error {
	catalog, err := topics.For(agent)
	if err != nil {
		return err
	}
	graph, err := turn.Graph(agent, turn.Config{})
	if err != nil {
		return err
	}
	processor, err := processors.New(brokers, graph, processors.WithTopics(catalog))
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "Hello.") })
	mux.Handle("/healthz", processors.HealthHandler(processor))

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return processor.Run(ctx) })
	// At the end, requests are answered while the processor drains.
	group.Go(func() error { return httpserver.Serve(ctx, httpserver.New(mux), listener, 5*time.Second) })
	return group.Wait()
}
