package channel

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

const waitLimit = 90 * time.Second

func TestRecordsArriveUnderTheSessionKey(t *testing.T) {
	const partitions = 3
	brokers, agent := testbroker.Start(t), testbroker.Agent()
	c := catalog(t, agent)
	require.NoError(t, topics.EnsureCluster(t.Context(), brokers, kafka.Config(), c, topics.WithPartitions(partitions)))
	to, err := processors.NewPublisher(brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, to.Close()) })
	b, err := NewBridge(Fixed(&Settings{
		Accounts: []Account{{Channel: "slack", Name: "main", Agent: agent}},
	}), to, []topics.Catalog{c}, BridgeConfig{})
	require.NoError(t, err)

	arrived := make(chan processors.Inbound, 100)
	follower, err := processors.NewFollower(brokers, []string{
		c.MessageInput.Name(), c.SessionControl.Name(), c.ThinkRequestResponse.Name(), c.GateDecisions.Name(), c.ChannelMessages.Name(),
	}, func(r processors.Inbound) { arrived <- r })
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- follower.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	select {
	case <-follower.Ready():
	case <-time.After(waitLimit):
		t.Fatal("the follower does not get ready")
	}

	type record struct{ topic, id string }
	want, got := map[record]string{}, map[record]string{} // the keys
	for _, user := range []string{"U1", "U2"} {
		for text, kinds := range map[string]map[string]string{
			"hello":    {c.MessageInput.Name(): "/message"},
			"/new":     {c.SessionControl.Name(): "/cancel", c.ThinkRequestResponse.Name(): "/forget", c.ChannelMessages.Name(): "/reply"},
			"/approve": {c.GateDecisions.Name(): "/decision"},
		} {
			in := direct(user, text)
			require.NoError(t, b.Receive(t.Context(), in))
			for topic, kind := range kinds {
				want[record{topic, in.Origin.EventID(in.Event) + kind}] = in.Origin.Session(agent)
			}
		}
	}
	deadline := time.After(waitLimit)
	for len(got) < len(want) {
		select {
		case r := <-arrived:
			require.Equal(t, codec.PartitionOf(string(r.Key), partitions), r.Partition)
			require.Len(t, r.Headers, 1)
			require.Equal(t, topics.HeaderID, r.Headers[0].Name)
			got[record{r.Topic, string(r.Headers[0].Value)}] = string(r.Key)
		case <-deadline:
			t.Fatalf("%d of %d records arrived", len(got), len(want))
		}
	}
	require.Equal(t, want, got)
}
