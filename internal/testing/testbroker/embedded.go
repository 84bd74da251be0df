//go:build !kafka

package testbroker

import (
	"testing"
	"time"

	"github.com/turntable-streams/turntable/internal/embedded"
)

// Embedded is true if Start starts an embedded broker, and false if it uses a real Kafka.
const Embedded = true

// Start starts an embedded broker for the test and returns its bootstrap addresses. The broker is closed with the test.
// The test fails if the broker cannot be started. Topics that are created with the broker's default have one partition.
func Start(tb testing.TB) []string {
	tb.Helper()
	return start(tb)
}

// StartWithLock is Start for workers whose share group has the given lock: the embedded broker has one for all groups. On a
// real Kafka, workers set that of their group.
func StartWithLock(tb testing.TB, lock time.Duration) []string {
	tb.Helper()
	return start(tb, embedded.WithRecordLock(lock))
}

func start(tb testing.TB, opts ...embedded.Option) []string {
	tb.Helper()
	b, err := embedded.Start(opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := b.Close(); err != nil {
			tb.Error(err)
		}
	})
	return b.Addrs()
}

// Main runs the tests of a binary that calls Start: goleak.VerifyTestMain(testbroker.Main(m)).
func Main(m TestingM) TestingM { return m }
