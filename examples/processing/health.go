package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
)

// serveHealth answers GET /healthz until ctx ends: 200 while the processor runs, else 503, with its state and lag.
func serveHealth(ctx context.Context, addr string, p *processors.Processor, logger *zap.Logger) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("HEALTH_ADDR: %w", err)
	}
	logger.Info("health", zap.Stringer("addr", listener.Addr()))
	mux := http.NewServeMux()
	mux.Handle("/healthz", processors.HealthHandler(p))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
