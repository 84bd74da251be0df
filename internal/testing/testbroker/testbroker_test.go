package testbroker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/topics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testbroker.Main(m)) }

func TestStartedBrokerAnswers(t *testing.T) {
	client, err := kgo.NewClient(kgo.SeedBrokers(testbroker.Start(t)...), kgo.RequestRetries(0))
	require.NoError(t, err)
	defer client.Close()
	require.Eventually(t, func() bool { return client.Ping(t.Context()) == nil }, time.Minute, 10*time.Millisecond)
}

func TestTestsShareABroker(t *testing.T) {
	require.Equal(t, testbroker.Start(t), testbroker.Start(t))
}

func TestAgentNamesAreUnique(t *testing.T) {
	one, other := testbroker.Agent(), testbroker.Agent()
	require.NotEqual(t, one, other)
	_, err := topics.For(one)
	require.NoError(t, err)
}
