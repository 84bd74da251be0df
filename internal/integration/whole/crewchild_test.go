package whole

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lovoo/goka"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew"
	"github.com/turntable-streams/turntable/processors/crew/crewtest"
	"github.com/turntable-streams/turntable/processors/crew/host"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/topics"
)

const (
	// crewRole is the environment variable that makes a child process one of crews: crewGroups or crewHost.
	crewRole   = "TURNTABLE_CHILD_CREW"
	crewGroups = "groups"
	crewHost   = "host"
	// crewWork is the variable with the directory of the repository, and crewStore that of the agents' sessions.
	crewWork  = "TURNTABLE_CHILD_CREW_WORK"
	crewStore = "TURNTABLE_CHILD_CREW_STORE"
)

// yardOptions make crashed agents start again soon.
func yardOptions() []crew.Option {
	return []crew.Option{crew.WithRestartDelay(50 * time.Millisecond)}
}

// crewChild is the main function of the processes that are killed.
func crewChild() error {
	logger, err := zap.NewProduction(zap.IncreaseLevel(zap.ErrorLevel))
	if err != nil {
		return err
	}
	if os.Getenv(crewRole) == crewHost {
		return crewHostChild(logger)
	}
	agent, brokers, dir := os.Getenv(childAgent), strings.Split(os.Getenv(childBrokers), ","), os.Getenv(childDir)
	catalog, err := topics.For(agent, topics.WithCrews(), topics.WithGates())
	if err != nil {
		return err
	}
	graphs, err := crew.Graphs(agent, yardOptions()...)
	gates, gatesErr := gate.Graph(agent)
	grants, grantsErr := gate.GrantsGraph(agent)
	if err := errors.Join(err, gatesErr, grantsErr); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(context.Background())
	for _, graph := range append([]*goka.GroupGraph{gates, grants}, graphs...) {
		p, err := processors.New(brokers, graph,
			processors.WithTopics(catalog), processors.WithPartitions(gatePartitions), processors.WithLogger(logger),
			processors.WithInstance(os.Getenv(childInstance)), processors.WithTick(20*time.Millisecond),
			processors.WithGuarantee(processors.Guarantee(os.Getenv(childGuarantee))),
			processors.WithStorage(processors.LevelDB(filepath.Join(dir, string(graph.Group())))),
		)
		if err != nil {
			return err
		}
		group.Go(func() error { return p.Run(ctx) })
	}
	return group.Wait()
}

func crewHostChild(logger *zap.Logger) error {
	command, err := crewtest.Command(os.Getenv(crewStore), yardScript(os.Getenv(crewStore)))
	if err != nil {
		return err
	}
	h, err := host.New(host.Config{
		Agent: os.Getenv(childAgent), Name: "h", Brokers: strings.Split(os.Getenv(childBrokers), ","),
		Commands: map[string][]string{"": command}, Dirs: []string{os.Getenv(crewWork)}, Logger: logger,
	})
	if err != nil {
		return err
	}
	return h.Run(context.Background())
}
