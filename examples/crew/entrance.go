package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/door"
	"github.com/turntable-streams/turntable/processors/httpserver"
)

// openDoor serves the door on a loopback port until stop is called, and returns its URL once it can answer. Anyone on the
// machine may use it: a real one has door.WithAuthenticate.
func openDoor(
	ctx context.Context, brokers []string, to processors.Publisher, addr string, logger *zap.Logger,
) (url string, stop func() error, err error) {
	index, err := door.NewIndex(workshop, door.WithLogger(logger))
	if err != nil {
		return "", nil, err
	}
	handler, err := door.New(index, to, door.WithLogger(logger))
	if err != nil {
		return "", nil, err
	}
	listener, err := httpserver.Listen(addr)
	if err != nil {
		return "", nil, err
	}
	running, cancel := context.WithCancel(ctx)
	server := httpserver.New(handler)
	group, running := errgroup.WithContext(running)
	group.Go(func() error { return index.Run(running, brokers) })
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-running.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(running), 5*time.Second)
		defer cancel()
		return server.Shutdown(ctx)
	})
	stop = func() error { cancel(); return group.Wait() }
	select {
	case <-index.Ready():
		return "http://" + listener.Addr().String(), stop, nil
	case <-running.Done():
		return "", nil, errors.Join(stop(), context.Cause(ctx))
	}
}
