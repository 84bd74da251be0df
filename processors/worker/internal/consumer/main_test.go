package consumer_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
)

// The tests wait for the group and for sessions to end nearly all the time.
func TestMain(m *testing.M) {
	testbroker.Together(6)
	goleak.VerifyTestMain(testbroker.Main(m), leaktest.Libraries()...)
}
