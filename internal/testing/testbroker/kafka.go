//go:build kafka

package testbroker

import (
	"testing"
	"time"

	"github.com/turntable-streams/turntable/internal/testing/kafkatest"
)

// Embedded is true if Start starts an embedded broker, and false if it uses a real Kafka.
const Embedded = false

// Start returns the bootstrap addresses of the test binary's real Kafka, which the first call starts, or those of
// KAFKA_BOOTSTRAP_SERVERS. The test fails if there is no broker. Topics that are created with the broker's default have
// its number of partitions.
func Start(tb testing.TB) []string {
	tb.Helper()
	return kafkatest.Shared(tb)
}

// StartWithLock is Start: workers set the lock of their share group themselves.
func StartWithLock(tb testing.TB, _ time.Duration) []string {
	tb.Helper()
	return Start(tb)
}

// Main runs the tests of a binary that calls Start: goleak.VerifyTestMain(testbroker.Main(m)). It stops their Kafka after
// the tests.
func Main(m TestingM) TestingM { return kafkatest.Main(m) }
