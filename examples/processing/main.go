// Processing runs the pipeline of one agent, configured by the environment. It replaces FlightDeck's `processing`
// application: the same topics, group and variables. Where PORT, WS_PORT or ALLOWED_HOST_MAPPING is set, it replaces
// `chat-api` too. It ends with 0 on SIGTERM or Ctrl-C, after a drain.
//
//	AGENT_NAME=support KAFKA_BOOTSTRAP_SERVERS=kafka:9092 KAFKA_STATE_DIR=/var/lib/turntable processing
//
// It is also the model of how to embed Turntable: environment to options, graph, processor, Run. What is switched on
// stands beside it: the turn (turn.go), deliveries (deliveries.go), the doors (doors.go), the WebSocket (websocket.go);
// stages.go has the order in which they stop.
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
		logger.Error("processing ends", zap.Error(err))
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
