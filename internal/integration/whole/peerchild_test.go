package whole

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lovoo/goka"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/peer/door"
	"github.com/turntable-streams/turntable/processors/peer/settings"
	"github.com/turntable-streams/turntable/processors/peer/transport"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// peerRole is the environment variable that says which side a child process is: dispatcher or receiver.
const (
	peerRole         = "TURNTABLE_CHILD_PEER"
	dispatcherRole   = "dispatcher"
	receiverRole     = "receiver"
	peerSettingsFile = "peers.json"
)

// peerChild is the main function of the processes that are killed. Each runs the turns, tasks and audit of its agent. That of
// the dispatcher sends the tasks, and that of the receiver serves the door.
func peerChild() error {
	agent, brokers, dir := os.Getenv(childAgent), strings.Split(os.Getenv(childBrokers), ","), os.Getenv(childDir)
	logger, err := zap.NewProduction(zap.IncreaseLevel(zap.ErrorLevel))
	if err != nil {
		return err
	}
	file, err := settings.Open(filepath.Join(filepath.Dir(dir), peerSettingsFile+"."+os.Getenv(peerRole)))
	if err != nil {
		return err
	}
	catalog, err := topics.For(agent, topics.WithPeers())
	if err != nil {
		return err
	}
	turns, turnsErr := turn.Graph(agent, turn.WithToolTimeout(10*time.Minute))
	tasks, tasksErr := peer.Graph(agent, peer.WithSettings(file.Settings), peer.WithTaskTime(9*time.Minute),
		peer.WithRetry(100*time.Millisecond, time.Second), peer.WithLease(3*time.Second))
	chain, chainErr := peer.ChainGraph(agent)
	to, toErr := processors.NewPublisher(brokers, processors.WithLogger(logger))
	if err := errors.Join(turnsErr, tasksErr, chainErr, toErr); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(context.Background())
	for _, graph := range []*goka.GroupGraph{turns, tasks, chain} {
		p, err := processors.New(brokers, graph,
			processors.WithTopics(catalog), processors.WithPartitions(gatePartitions), processors.WithLogger(logger),
			processors.WithInstance(os.Getenv(childInstance)),
			processors.WithGuarantee(processors.Guarantee(os.Getenv(childGuarantee))),
			processors.WithStorage(processors.LevelDB(filepath.Join(dir, string(graph.Group())))),
		)
		if err != nil {
			return err
		}
		group.Go(func() error { return p.Run(ctx) })
	}
	if os.Getenv(peerRole) == dispatcherRole {
		return sendTasks(ctx, group, brokers, agent, to, file, logger)
	}
	replies, err := door.NewReplies(agent, door.WithLogger(logger))
	if err != nil {
		return err
	}
	handler, err := door.New(replies, to, file.Settings, door.WithLogger(logger))
	if err != nil {
		return err
	}
	group.Go(func() error { return replies.Run(ctx, brokers) })
	group.Go(func() error { return serveGates(dir, http.Handler(handler)) })
	return group.Wait()
}

func sendTasks(
	ctx context.Context, group *errgroup.Group, brokers []string, agent string, to processors.Publisher, file *settings.File, logger *zap.Logger,
) error {
	requests := transport.New(file.Settings)
	defer requests.Close()
	sender, err := sink.New(agent, to, sink.ForPeers(), sink.WithTransport(topics.KindPeer, requests), sink.WithLogger(logger))
	if err != nil {
		return err
	}
	group.Go(func() error { return requests.Run(ctx, agent, brokers) })
	group.Go(func() error { return sender.Run(ctx, brokers) })
	return group.Wait()
}
