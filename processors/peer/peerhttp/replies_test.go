package peerhttp

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

func TestRepliesOfBrokersReachWhoWaits(t *testing.T) {
	brokers, agent := testbroker.Start(t), testbroker.Agent()
	catalog, err := topics.For(agent, topics.WithPeers())
	require.NoError(t, err)
	require.NoError(t, topics.EnsureCluster(t.Context(), brokers, kafka.Config(), catalog, topics.WithPartitions(2)))
	to, err := processors.NewPublisher(brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, to.Close()) })

	replies, err := NewReplies(agent, Config{})
	require.NoError(t, err)
	require.False(t, replies.follows.Serves())
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- replies.Run(ctx, brokers) }()
	select {
	case <-replies.Ready():
	case <-time.After(waitLimit):
		require.FailNow(t, "the replies are not ready")
	}
	require.True(t, replies.follows.Serves())
	w, stop := replies.wait(task{session: "s", inboundID: "b", taskID: "t"}, "h")
	defer stop()
	out, err := processors.OutboundOf(catalog.PeerReplies, "s", topics.PeerReply{TaskID: "t", InboundID: "b", State: topics.PeerDone, Hash: "h", Body: topics.Raw(`{"a":1}`)}, "")
	require.NoError(t, err)
	require.NoError(t, to.Publish(t.Context(), out))
	select {
	case reply := <-w.replies:
		require.JSONEq(t, `{"a":1}`, string(reply.Body))
	case <-time.After(waitLimit):
		require.FailNow(t, "no reply")
	}
	cancel()
	require.NoError(t, <-ran)
	require.False(t, replies.follows.Serves())
	require.ErrorIs(t, replies.Run(t.Context(), brokers), ErrConfig, "a second time")
}
