//go:build kafka

package kafkatest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/kafkatest"
)

// One cluster for all that three nodes can do: they take longest to start.
func TestClusterSurvivesTheLossOfEachNode(t *testing.T) {
	ctx := within(t, 10*time.Minute)
	begin := time.Now()
	c := kafkatest.New(t, kafkatest.Options{Nodes: 3})
	t.Log("start", time.Since(begin))
	require.Len(t, c.Bootstrap(), 3)
	require.ErrorContains(t, c.Kill(4), "no node 4")

	client := dial(t, c.Bootstrap(), kgo.RequiredAcks(kgo.AllISRAcks()))
	create(ctx, t, client, "lasting", 1)
	var sent []string
	send := func() {
		for range 20 {
			value := fmt.Sprint(len(sent))
			produce(ctx, t, client, "lasting", value)
			sent = append(sent, value)
		}
	}
	send()

	t.Run("leader moves", func(t *testing.T) {
		for to := 1; to <= 3; to++ {
			begin := time.Now()
			require.NoError(t, c.MoveLeader(ctx, "lasting", 0, to))
			t.Log("leader moved in", time.Since(begin))
			leader, err := c.Leader(ctx, "lasting", 0)
			require.NoError(t, err)
			require.Equal(t, to, leader)
			send()
		}
	})
	t.Run("leader is lost", func(t *testing.T) {
		require.NoError(t, c.InSync(ctx))
		lost, err := c.Leader(ctx, "lasting", 0)
		require.NoError(t, err)
		begin := time.Now()
		require.NoError(t, c.Kill(lost))
		next, err := c.Leader(ctx, "lasting", 0)
		require.NoError(t, err)
		require.NotEqual(t, lost, next)
		t.Log("another leads after", time.Since(begin))
		send()
		t.Log("acknowledged after", time.Since(begin))

		require.NoError(t, c.Restart(ctx, lost))
		require.NoError(t, c.InSync(ctx))
		t.Log("in sync again after", time.Since(begin))
		require.NoError(t, c.MoveLeader(ctx, "lasting", 0, lost))
	})
	t.Run("leader hangs", func(t *testing.T) {
		hung, err := c.Leader(ctx, "lasting", 0)
		require.NoError(t, err)
		begin := time.Now()
		require.NoError(t, c.Pause(hung))
		next, err := c.Leader(ctx, "lasting", 0)
		require.NoError(t, err)
		require.NotEqual(t, hung, next)
		t.Log("another leads after", time.Since(begin))
		send()
		t.Log("acknowledged after", time.Since(begin))
		require.NoError(t, c.Resume(hung))
		require.NoError(t, c.InSync(ctx))
	})
	t.Run("leader stops", func(t *testing.T) {
		stopped, err := c.Leader(ctx, "lasting", 0)
		require.NoError(t, err)
		begin := time.Now()
		require.NoError(t, c.Stop(ctx, stopped))
		t.Log("stop", time.Since(begin))
		send()
		begin = time.Now()
		require.NoError(t, c.Restart(ctx, stopped))
		t.Log("restart", time.Since(begin))
		require.NoError(t, c.InSync(ctx))
	})
	require.Equal(t, sent, read(ctx, t, c.Bootstrap(), "lasting", len(sent)), "what was acknowledged is there, once")
}
