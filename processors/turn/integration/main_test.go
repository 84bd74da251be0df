package integration

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
)

// waiting is how many of the tests run at a time that may run beside others: what they do most is wait for brokers,
// sessions and processes.
const waiting = 6

func TestMain(m *testing.M) {
	if os.Getenv(childAgent) != "" {
		os.Exit(child())
	}
	testbroker.Together(waiting)
	goleak.VerifyTestMain(testbroker.Main(m), leaktest.Libraries()...)
}
