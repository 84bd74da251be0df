package whole

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// programs are those of the child processes, which tests kill.
var programs = kill.Programs{
	gatesProgram: kill.Of(runGates), crewsProgram: kill.Of(runCrews), hostProgram: kill.Of(runCrewHost),
	channelsProgram: kill.Of(runChannels), peersProgram: kill.Of(runPeer), memoirsProgram: kill.Of(runMemoirs),
	approvalsProgram: kill.Of(runApprovals),
}

const (
	gatesProgram     = "gates"
	crewsProgram     = "crews"
	hostProgram      = "host"
	channelsProgram  = "channels"
	peersProgram     = "peers"
	memoirsProgram   = "memoirs"
	approvalsProgram = "approvals"
)

// child is the configuration of a child process. Some programs have more of it than others.
type child struct {
	Agent, Instance, Dir string
	Brokers              []string
	Guarantee            processors.Guarantee
	Worker, Platform     string // of channels: the agent to whom work is handed off, and the platform
	Role                 string // of peers
	Work, Store          string // of crews: the directories of the repository and of the agents' sessions
}

// serve runs a group in a child process.
func (c child) serve(
	ctx context.Context, to *errgroup.Group, catalog topics.Catalog, graph *goka.GroupGraph, log *zap.Logger, more ...processors.Option,
) error {
	p, err := processors.New(c.Brokers, graph, append([]processors.Option{
		processors.WithTopics(catalog), processors.WithPartitions(partitions), processors.WithLogger(log),
		processors.WithTick(20 * time.Millisecond), processors.WithInstance(c.Instance), processors.WithGuarantee(c.Guarantee),
		processors.WithStorage(processors.LevelDB(filepath.Join(c.Dir, string(graph.Group())))),
	}, more...)...)
	if err != nil {
		return err
	}
	to.Go(func() error { return p.Run(ctx) })
	return nil
}

// kills is the number of kills of a test.
func kills(t *testing.T, embedded, kafka int) int {
	return kill.Size(t, "TURNTABLE_KILLS", onBroker(embedded, kafka))
}

// onBroker is a size that depends on the broker of the tests.
func onBroker(embedded, kafka int) int {
	if testbroker.Embedded {
		return embedded
	}
	return kafka
}
