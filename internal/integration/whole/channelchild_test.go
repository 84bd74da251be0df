package whole

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/lovoo/goka"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/channel/settings"
	"github.com/turntable-streams/turntable/processors/channel/transport"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// The environment variables of a child of the test of channels: the agent to whom work is handed off, and the platform.
const (
	channelWorker   = "TURNTABLE_CHILD_WORKER"
	channelPlatform = "TURNTABLE_CHILD_PLATFORM"
)

// channelNames are the channels of the test, and chunkLimit the longest message on them, in characters.
var channelNames = []string{"slack", "email", "telegram", "webhook"}

const chunkLimit = 120

// channelSettings has one account on each channel, which takes all messages.
func channelSettings(agent string, channels ...string) (*settings.Settings, error) {
	var b strings.Builder
	b.WriteString("agents: [{name: " + agent + "}]\naccounts:\n")
	for _, c := range channels {
		b.WriteString("- {channel: " + c + ", name: main, agent: " + agent + ", group: all}\n")
	}
	return settings.Parse([]byte(b.String()))
}

// channelChild is the main function of the processes that are killed. Each runs the turns and delegations of two agents, and
// the deliveries of the one that people talk to.
func channelChild() error {
	agent, worker := os.Getenv(childAgent), os.Getenv(channelWorker)
	brokers, dir := strings.Split(os.Getenv(childBrokers), ","), os.Getenv(childDir)
	logger, err := zap.NewProduction(zap.IncreaseLevel(zap.ErrorLevel))
	if err != nil {
		return err
	}
	current, err := channelSettings(agent, channelNames...)
	if err != nil {
		return err
	}
	to, err := processors.NewPublisher(brokers, processors.WithLogger(logger))
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(context.Background())
	for _, name := range []string{agent, worker} {
		catalog, err := topics.For(name, topics.WithChannels(), topics.WithDeliveries())
		if err != nil {
			return err
		}
		turns, turnsErr := turn.Graph(name, turn.WithChannels(), turn.WithQueue(turn.Queue, 64))
		delegations, delegationsErr := channel.Graph(name, channel.WithAgents(agent, worker))
		graphs := []*goka.GroupGraph{turns, delegations}
		if name == agent {
			deliveries, deliveriesErr := delivery.Graph(name, delivery.WithChannels())
			routes, routesErr := delivery.RoutesGraph(name)
			graphs = append(graphs, deliveries, routes)
			turnsErr = errors.Join(turnsErr, deliveriesErr, routesErr)
		}
		if err := errors.Join(turnsErr, delegationsErr); err != nil {
			return err
		}
		for _, graph := range graphs {
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
	}
	var accounts []transport.Account
	for _, c := range channelNames {
		accounts = append(accounts, transport.Account{Name: "main", Adapter: poster{c, os.Getenv(channelPlatform), chunkLimit}})
	}
	posts, err := transport.New(agent, func() *settings.Settings { return current }, accounts)
	if err != nil {
		return err
	}
	sender, err := sink.New(agent, to, sink.WithTransport(topics.KindChannel, posts), sink.WithLogger(logger),
		sink.WithName(os.Getenv(childInstance)))
	if err != nil {
		return err
	}
	group.Go(func() error { return sender.Run(ctx, brokers) })
	return group.Wait()
}
