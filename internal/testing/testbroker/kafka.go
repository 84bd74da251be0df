//go:build kafka

package testbroker

import (
	"testing"

	"github.com/turntable-streams/turntable/internal/testing/kafkatest"
)

// Embedded says which broker Start starts.
const Embedded = false

// Start is where to bootstrap from: the real Kafka of the test binary, or that of KAFKA_BOOTSTRAP_SERVERS. Where there
// is none to be had, the test fails. Topics that do not say how many partitions they want have the broker's default.
func Start(tb testing.TB) []string {
	tb.Helper()
	return kafkatest.Shared(tb)
}

// Main is how a binary that calls Start runs its tests: goleak.VerifyTestMain(testbroker.Main(m)). It ends their Kafka
// when they have run.
func Main(m TestingM) TestingM { return kafkatest.Main(m) }
