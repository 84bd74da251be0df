package whole

import (
	"context"
	"errors"
	"strings"

	"github.com/lovoo/goka"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/delegation"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// channelNames are the channels of the test, and chunkLimit the longest message on them, in characters.
var channelNames = []string{"slack", "email", "telegram", "webhook"}

const chunkLimit = 120

// channelSettings has one account on each channel, which takes all messages.
func channelSettings(agent string, channels ...string) (*channel.Settings, error) {
	var b strings.Builder
	b.WriteString("agents: [{name: " + agent + "}]\naccounts:\n")
	for _, c := range channels {
		b.WriteString("- {channel: " + c + ", name: main, agent: " + agent + ", group: all}\n")
	}
	return channel.ParseSettings([]byte(b.String()))
}

// runChannels is the processes that are killed. Each runs the turns and delegations of two agents, and the deliveries of the one
// that people talk to.
func runChannels(ctx context.Context, c child) error {
	agent, helper, brokers, logger := c.Agent, c.Worker, c.Brokers, kill.Logger(zap.WarnLevel)
	current, err := channelSettings(agent, channelNames...)
	if err != nil {
		return err
	}
	to, err := processors.NewPublisher(brokers, processors.WithLogger(logger))
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range []string{agent, helper} {
		catalog, err := topics.For(name, topics.WithChannels(), topics.WithDeliveries())
		if err != nil {
			return err
		}
		turns, turnsErr := turn.Graph(name, turn.Config{Channels: true, Policy: turn.Queue, QueueLimit: 64})
		delegations, delegationsErr := delegation.Graph(name, delegation.Config{Agents: []string{agent, helper}})
		graphs := []*goka.GroupGraph{turns, delegations}
		if name == agent {
			deliveries, deliveriesErr := delivery.Graph(name, delivery.Config{Channels: true})
			routes, routesErr := delivery.RoutesGraph(name, delivery.Config{})
			graphs = append(graphs, deliveries, routes)
			turnsErr = errors.Join(turnsErr, deliveriesErr, routesErr)
		}
		if err := errors.Join(turnsErr, delegationsErr); err != nil {
			return err
		}
		for _, graph := range graphs {
			if err := c.serve(ctx, group, catalog, graph, logger); err != nil {
				return err
			}
		}
	}
	var accounts []channel.AccountAdapter
	for _, name := range channelNames {
		accounts = append(accounts, channel.AccountAdapter{Name: "main", Adapter: poster{name, c.Platform, chunkLimit}})
	}
	posts, err := channel.NewTransport(agent, func() *channel.Settings { return current }, accounts, channel.TransportConfig{})
	if err != nil {
		return err
	}
	sender, err := sink.New(agent, to, sink.Config{
		Transports: map[string]sink.Transport{topics.KindChannel: posts}, Config: worker.Config{Logger: logger}, Name: c.Instance,
	})
	if err != nil {
		return err
	}
	group.Go(func() error { return sender.Run(ctx, brokers) })
	return group.Wait()
}
