package whole

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/lovoo/goka"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/gate/gatehttp"
	"github.com/turntable-streams/turntable/processors/httpserver"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// addressFile is the file in a child's directory with the address of its door.
const addressFile = "address"

// unanswered is how long the gates wait for which no one decides.
const unanswered = 3 * time.Second

// gatePolicy asks for every payment. Payments to "nobody" expire soon.
func gatePolicy() approval.Policy {
	return approval.Policy{TTL: time.Hour, Rules: []approval.Rule{
		{Tool: "pay", Effect: approval.Ask, Edit: true},
		{
			Tool: "pay", Effect: approval.Ask, TTL: unanswered,
			Args: map[string]approval.Condition{"/to": {Equals: topics.Raw(`"nobody"`)}},
		},
	}}
}

// runGates is the process that is killed. It runs turns, gates, and the door of the gates.
func runGates(ctx context.Context, c child) error {
	agent, brokers, logger := c.Agent, c.Brokers, kill.Logger(zap.WarnLevel)
	catalog, err := topics.For(agent, topics.WithGates())
	if err != nil {
		return err
	}
	turns, turnsErr := turn.Graph(agent, turn.Config{Approval: new(gatePolicy())})
	gates, gatesErr := gate.Graph(agent, gate.Config{Policy: gatePolicy()})
	grants, grantsErr := gate.GrantsGraph(agent, gate.Config{})
	index, indexErr := gatehttp.NewIndex(agent, gatehttp.Config{Door: auth.Door{Logger: logger}})
	to, toErr := processors.NewPublisher(brokers, processors.WithLogger(logger))
	if err := errors.Join(turnsErr, gatesErr, grantsErr, indexErr, toErr); err != nil {
		return err
	}
	handler, err := gatehttp.New(index, to, gatehttp.Config{})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, graph := range []*goka.GroupGraph{turns, gates, grants} {
		if err := c.serve(ctx, group, catalog, graph, logger); err != nil {
			return err
		}
	}
	group.Go(func() error { return index.Run(ctx, brokers) })
	group.Go(func() error { return serveDoor(ctx, c.Dir, handler) })
	return group.Wait()
}

// serveDoor serves until the context ends, at an address that it writes to the directory.
func serveDoor(ctx context.Context, dir string, handler http.Handler) error {
	listener, err := httpserver.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	written := filepath.Join(dir, addressFile+".new")
	if err := os.WriteFile(written, []byte(listener.Addr().String()), 0o600); err != nil {
		return err
	}
	if err := os.Rename(written, filepath.Join(dir, addressFile)); err != nil {
		return err
	}
	server := httpserver.New(handler)
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
