package whole

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/lovoo/goka"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/peer/peerhttp"
	"github.com/turntable-streams/turntable/processors/peer/transport"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// The roles say which side a child process is.
const (
	dispatcherRole   = "dispatcher"
	receiverRole     = "receiver"
	peerSettingsFile = "peers.json"
)

// runPeer is the processes that are killed. Each runs the turns, tasks and audit of its agent. That of the dispatcher sends the
// tasks, and that of the receiver serves the door.
func runPeer(ctx context.Context, c child) error {
	agent, brokers, logger := c.Agent, c.Brokers, kill.Logger(zap.WarnLevel)
	file, err := peer.OpenSettings(filepath.Join(filepath.Dir(c.Dir), peerSettingsFile+"."+c.Role), peer.SettingsConfig{})
	if err != nil {
		return err
	}
	catalog, err := topics.For(agent, topics.WithPeers())
	if err != nil {
		return err
	}
	turns, turnsErr := turn.Graph(agent, turn.Config{ToolTimeout: 10 * time.Minute})
	tasks, tasksErr := peer.Graph(agent, peer.Config{
		Settings: file.Settings, TaskTime: 9 * time.Minute,
		RetryInitial: 100 * time.Millisecond, RetryLongest: time.Second, Lease: 3 * time.Second,
	})
	chain, chainErr := peer.ChainGraph(agent)
	to, toErr := processors.NewPublisher(brokers, processors.WithLogger(logger))
	if err := errors.Join(turnsErr, tasksErr, chainErr, toErr); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, graph := range []*goka.GroupGraph{turns, tasks, chain} {
		if err := c.serve(ctx, group, catalog, graph, logger); err != nil {
			return err
		}
	}
	if c.Role == dispatcherRole {
		return sendTasks(ctx, group, brokers, agent, to, file, logger)
	}
	replies, err := peerhttp.NewReplies(agent, peerhttp.Config{Door: auth.Door{Logger: logger}})
	if err != nil {
		return err
	}
	handler, err := peerhttp.New(replies, to, file.Settings, peerhttp.Config{})
	if err != nil {
		return err
	}
	group.Go(func() error { return replies.Run(ctx, brokers) })
	group.Go(func() error { return serveDoor(ctx, c.Dir, handler) })
	return group.Wait()
}

func sendTasks(
	ctx context.Context, group *errgroup.Group, brokers []string, agent string, to processors.Publisher, file *peer.SettingsFile, logger *zap.Logger,
) error {
	requests := transport.New(file.Settings, transport.Config{})
	defer requests.Close()
	sender, err := sink.New(agent, to, sink.Config{
		Peers: true, Transports: map[string]sink.Transport{topics.KindPeer: requests}, Config: worker.Config{Logger: logger},
	})
	if err != nil {
		return err
	}
	group.Go(func() error { return requests.Run(ctx, agent, brokers) })
	group.Go(func() error { return sender.Run(ctx, brokers) })
	return group.Wait()
}
