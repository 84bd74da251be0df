package instance

import (
	"errors"
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/internal/kafka"
)

// The connection to the controller was cut while it was idle: the first request on it fails, and a second one is answered.
func TestTopicsAreDescribedOverANewConnectionAfterACut(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "in"))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	client, err := sarama.NewClient(c.ListenAddrs(), kafka.Config())
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	m := &TopicManager{Client: client}
	cut := 0
	c.ControlKey(int16(kmsg.Metadata), func(kmsg.Request) (kmsg.Response, error, bool) {
		cut++
		return nil, errors.New("cut"), true // the broker closes the connection
	})
	found, err := m.Describe("in")
	require.NoError(t, err)
	require.Equal(t, 3, found["in"].Partitions)
	require.Equal(t, 1, cut)
}
