// Processing runs the pipeline of one agent, configured by the environment. It replaces FlightDeck's `processing`
// application: the same topics, group and variables. Where PORT, WS_PORT or ALLOWED_HOST_MAPPING is set, it replaces
// `chat-api` too. It drains and exits with 0 on SIGTERM or Ctrl-C.
//
//	AGENT_NAME=support KAFKA_BOOTSTRAP_SERVERS=kafka:9092 KAFKA_STATE_DIR=/var/lib/turntable processing
//
// It also shows how to embed Turntable: environment to options (settings.go), graph, processor, Run (pipeline.go). The
// optional parts are deliveries (deliveries.go), the doors (doors.go) and who may use them (authentication.go), the WebSocket
// (websocket.go), calls that wait for a person (gates.go) and the health check (health.go); stages.go determines the order in which they stop.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"go.uber.org/zap"
)

func main() {
	logger := zap.Must(zap.NewProduction(zap.AddStacktrace(zap.FatalLevel)))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal does not wait for the drain
	err := run(ctx, logger)
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
