package embedded_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/topics"
)

func TestStartedBrokerAnswers(t *testing.T) {
	client, err := kgo.NewClient(kgo.SeedBrokers(testbroker.Start(t)...), kgo.RequestRetries(0))
	require.NoError(t, err)
	defer client.Close()
	require.Eventually(t, func() bool { return client.Ping(t.Context()) == nil }, time.Minute, 10*time.Millisecond)
}

func TestTestsShareABroker(t *testing.T) {
	require.Equal(t, testbroker.Start(t), testbroker.Start(t))
}

func TestTopicsOfAnAgentAreDeletedWithItsTest(t *testing.T) {
	client, err := kgo.NewClient(kgo.SeedBrokers(testbroker.Start(t)...))
	require.NoError(t, err)
	defer client.Close()
	admin := kadm.NewClient(client)
	topics := func() []string {
		fresh, err := kgo.NewClient(kgo.SeedBrokers(testbroker.Start(t)...)) // clients keep what they were told
		require.NoError(t, err)
		defer fresh.Close()
		listed, err := kadm.NewClient(fresh).ListTopics(t.Context())
		require.NoError(t, err)
		return listed.Names()
	}
	kept := testbroker.Agent() + "-in"
	var of string
	t.Run("with an agent", func(t *testing.T) {
		of = testbroker.AgentOf(t) + "-in"
		_, err := admin.CreateTopics(t.Context(), 1, 1, nil, kept, of)
		require.NoError(t, err)
		eventually(t, func() bool { return slices.Contains(topics(), of) })
	})
	eventually(t, func() bool { return !slices.Contains(topics(), of) })
	eventually(t, func() bool { return slices.Contains(topics(), kept) })
}

// eventually waits until the brokers show a change of topics that they have confirmed.
func eventually(t *testing.T, shown func() bool) {
	t.Helper()
	require.Eventually(t, shown, time.Minute, 10*time.Millisecond)
}

func TestAgentNamesAreUnique(t *testing.T) {
	one, other := testbroker.Agent(), testbroker.Agent()
	require.NotEqual(t, one, other)
	_, err := topics.For(one)
	require.NoError(t, err)
}
