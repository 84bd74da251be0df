//go:build kafka

package integration

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/kafkatest"
)

// brokers is the real Kafka of the test binary, or that of KAFKA_BOOTSTRAP_SERVERS.
func brokers(t testing.TB) []string {
	t.Helper()
	return kafkatest.Shared(t)
}

// tests end their Kafka when they have run.
func tests(m *testing.M) goleak.TestingM { return kafkatest.Main(m) }
