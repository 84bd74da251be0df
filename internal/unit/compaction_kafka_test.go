//go:build kafka

package unit_test

import (
	"testing"

	"github.com/turntable-streams/turntable/internal/testbroker"
)

// compacting is the real Kafka, which compacts its topics by itself.
func compacting(t testing.TB) (brokers []string, compact func()) {
	t.Helper()
	return testbroker.Start(t), func() {}
}
