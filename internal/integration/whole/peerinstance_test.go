package whole

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/peer/peerhttp"
	"github.com/turntable-streams/turntable/processors/peer/transport"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// instance runs an instance that sends and accepts tasks, with more groups, and returns the address of its door. Its model
// answers at once.
func instance(
	ctx context.Context, tb testing.TB, group *errgroup.Group, brokers []string, agent string, more []*goka.GroupGraph, configuration string,
) string {
	tb.Helper()
	s, err := peer.ParseSettings([]byte(configuration), func(string) (string, bool) { return "", false })
	require.NoError(tb, err)
	current := func() *peer.Settings { return s }
	catalog, err := topics.For(agent, topics.WithPeers(), topics.WithDeliveries())
	require.NoError(tb, err)
	to, err := processors.NewPublisher(brokers)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, to.Close()) })
	turns, err := turn.Graph(agent, turn.Config{})
	require.NoError(tb, err)
	tasks, err := peer.Graph(agent, peer.Config{Settings: current})
	require.NoError(tb, err)
	chain, err := peer.ChainGraph(agent)
	require.NoError(tb, err)
	for _, g := range append([]*goka.GroupGraph{turns, tasks, chain}, more...) {
		p, err := processors.New(brokers, g, processors.WithTopics(catalog), processors.WithPartitions(partitions),
			processors.WithStorage(processors.Memory()))
		require.NoError(tb, err)
		group.Go(func() error { return p.Run(ctx) })
	}
	model, err := think.New(agent, to, think.Func(func(context.Context, think.Step) (think.Reply, error) {
		return think.Say("done"), nil
	}), think.Config{})
	require.NoError(tb, err)
	group.Go(func() error { return model.Run(ctx, brokers) })
	requests := transport.New(current, transport.Config{})
	tb.Cleanup(requests.Close)
	sender, err := sink.New(agent, to, sink.Config{Peers: true, Transports: map[string]sink.Transport{topics.KindPeer: requests}})
	require.NoError(tb, err)
	group.Go(func() error { return sender.Run(ctx, brokers) })
	replies, err := peerhttp.NewReplies(agent, peerhttp.Config{})
	require.NoError(tb, err)
	group.Go(func() error { return replies.Run(ctx, brokers) })
	handler, err := peerhttp.New(replies, to, current, peerhttp.Config{OpenProxy: true})
	require.NoError(tb, err)
	server := httptest.NewServer(handler)
	tb.Cleanup(server.Close)
	<-replies.Ready()
	return server.URL
}
