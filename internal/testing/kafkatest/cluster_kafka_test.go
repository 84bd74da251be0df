//go:build kafka

package kafkatest_test

import (
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/kafkatest"
)

func TestRestartedBrokerHasItsRecords(t *testing.T) {
	ctx := within(t, 4*time.Minute)
	begin := time.Now()
	c := kafkatest.New(t, kafkatest.Options{})
	t.Log("start", time.Since(begin))
	client := dial(t, c.Bootstrap())
	create(ctx, t, client, "kept", 1)
	produce(ctx, t, client, "kept", "a")
	unknown := client.ProduceSync(ctx, &kgo.Record{Topic: "never-created", Value: []byte("x")}).FirstErr()
	require.ErrorIs(t, unknown, kerr.UnknownTopicOrPartition, "use does not create a topic")

	require.NoError(t, c.Kill(1))
	require.ErrorIs(t, c.Kill(1), kafkatest.ErrDown)
	_, err := c.Leader(ctx, "kept", 0)
	require.ErrorIs(t, err, kafkatest.ErrDown)
	_, err = net.Dial("tcp", c.Bootstrap()[0])
	require.Error(t, err)

	begin = time.Now()
	require.NoError(t, c.Restart(ctx, 1))
	t.Log("restart after a kill", time.Since(begin))
	produce(ctx, t, client, "kept", "b")

	begin = time.Now()
	require.NoError(t, c.Stop(ctx, 1))
	t.Log("stop", time.Since(begin))
	begin = time.Now()
	require.NoError(t, c.Restart(ctx, 1))
	t.Log("restart after a stop", time.Since(begin))
	require.Equal(t, []string{"a", "b"}, read(ctx, t, c.Bootstrap(), "kept", 2))
}

func TestPausedBrokerAnswersAfterItResumes(t *testing.T) {
	ctx := within(t, 3*time.Minute)
	c := kafkatest.New(t, kafkatest.Options{})
	client := dial(t, c.Bootstrap())
	create(ctx, t, client, "paused", 1)

	require.NoError(t, c.Pause(1))
	sent := make(chan error, 1)
	client.Produce(ctx, &kgo.Record{Topic: "paused", Value: []byte("a")}, func(_ *kgo.Record, err error) { sent <- err })
	require.Never(t, func() bool { return len(sent) > 0 }, time.Second, 50*time.Millisecond)
	require.NoError(t, c.Resume(1))
	require.NoError(t, <-sent)
	require.Equal(t, []string{"a"}, read(ctx, t, c.Bootstrap(), "paused", 1))

	require.NoError(t, c.Pause(1))
	require.NoError(t, c.Stop(ctx, 1), "a paused node stops too")
}

func TestClusterIsRestartedFromItsDirectory(t *testing.T) {
	ctx := within(t, 4*time.Minute)
	o := kafkatest.Options{
		Dir:        filepath.Join(t.TempDir(), "cluster"),
		Properties: map[string]string{"num.partitions": "3"},
	}
	first, err := kafkatest.Start(ctx, o)
	require.NoError(t, err)
	client := dial(t, first.Bootstrap())
	create(ctx, t, client, "moved", -1)
	produce(ctx, t, client, "moved", "a")
	client.Close()

	_, err = kafkatest.Start(ctx, o)
	require.ErrorIs(t, err, kafkatest.ErrInUse)
	_, port, err := net.SplitHostPort(first.Bootstrap()[0])
	require.NoError(t, err)
	o.Port, err = strconv.Atoi(port)
	require.NoError(t, err)
	_, err = kafkatest.Start(ctx, kafkatest.Options{Port: o.Port})
	require.ErrorContains(t, err, port)
	require.NoError(t, first.Close())
	require.NoError(t, first.Close(), "closing twice is closing once")

	_, err = kafkatest.Start(ctx, kafkatest.Options{Dir: o.Dir, Nodes: 3})
	require.ErrorContains(t, err, "cluster of 1 nodes")
	second := kafkatest.New(t, o)
	require.Equal(t, first.Bootstrap(), second.Bootstrap())
	require.Equal(t, []string{"a"}, read(ctx, t, second.Bootstrap(), "moved", 1))
}

func TestErrorQuotesTheLogAboutAnInvalidProperty(t *testing.T) {
	_, err := kafkatest.Start(within(t, 3*time.Minute), kafkatest.Options{
		Properties: map[string]string{"num.network.threads": "several"},
	})
	require.ErrorContains(t, err, "num.network.threads")
}
