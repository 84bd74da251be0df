// Processing runs the pipeline of one agent, configured by the environment. It replaces FlightDeck's `processing`
// application: the same topics, group and variables. Where PORT, WS_PORT or ALLOWED_HOST_MAPPING is set, it replaces
// `chat-api` too. With PARTS, some of its parts run in this process and others elsewhere. It drains and exits with 0 on
// SIGTERM or Ctrl-C.
//
//	AGENT_NAME=support KAFKA_BOOTSTRAP_SERVERS=kafka:9092 KAFKA_STATE_DIR=/var/lib/turntable processing
//
// It also shows how to embed Turntable: environment to options (settings.go), graph, processor, Run (pipeline.go). The
// parts (parts.go) are the turn, with calls that wait for a person (gates.go), deliveries (deliveries.go), the doors (doors.go)
// and who may use them (authentication.go), and the WebSocket (websocket.go). health.go has the health check, and stages.go
// the order in which the parts stop.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"go.uber.org/zap"
)

func main() {
	probe := flag.Bool("healthcheck", false, "exit with 0 if the process that serves HEALTH_ADDR on this machine is healthy, else with 1")
	export := flag.Bool("export-history", false, "give the histories back to FlightDeck's application, which must not run, and exit")
	flag.Parse()
	if *probe {
		if err := checkHealth(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	logger := zap.Must(zap.NewProduction(zap.AddStacktrace(zap.FatalLevel)))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal does not wait for the drain
	do := run
	if *export {
		do = exportHistories
	}
	err := do(ctx, logger)
	if err != nil {
		logger.Error("processing failed", zap.Error(err))
	}
	_ = logger.Sync()
	if err != nil {
		os.Exit(1)
	}
}

func run(ctx context.Context, logger *zap.Logger) (err error) {
	s, err := readSettings(logger)
	if err != nil {
		return err
	}
	s.announce(logger)
	p, err := build(s, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	return inOrder(ctx, p.stages...)
}
