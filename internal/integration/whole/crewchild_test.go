package whole

import (
	"context"
	"errors"
	"time"

	"github.com/lovoo/goka"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/processors/crew"
	"github.com/turntable-streams/turntable/processors/crew/crewtest"
	"github.com/turntable-streams/turntable/processors/crew/host"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/topics"
)

// quickRestarts makes crashed agents start again soon.
var quickRestarts = crew.Config{RestartDelay: 50 * time.Millisecond}

// runCrews is the processes that are killed, beside the host.
func runCrews(ctx context.Context, c child) error {
	agent := c.Agent
	catalog, err := topics.For(agent, topics.WithCrews(), topics.WithGates())
	if err != nil {
		return err
	}
	graphs, err := crew.Graphs(agent, quickRestarts)
	gates, gatesErr := gate.Graph(agent, gate.Config{})
	grants, grantsErr := gate.GrantsGraph(agent, gate.Config{})
	if err := errors.Join(err, gatesErr, grantsErr); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, graph := range append([]*goka.GroupGraph{gates, grants}, graphs...) {
		if err := c.serve(ctx, group, catalog, graph, kill.Logger(zap.WarnLevel)); err != nil {
			return err
		}
	}
	return group.Wait()
}

func runCrewHost(ctx context.Context, c child) error {
	command, err := crewtest.Command(c.Store, crewScript(c.Store))
	if err != nil {
		return err
	}
	h, err := host.New(host.Config{
		Agent: c.Agent, Name: "h", Brokers: c.Brokers,
		Commands: map[string][]string{"": command}, Dirs: []string{c.Work}, Logger: kill.Logger(zap.WarnLevel),
	})
	if err != nil {
		return err
	}
	return h.Run(ctx)
}
