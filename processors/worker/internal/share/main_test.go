package share_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
)

// The tests wait for records to arrive and for locks to end nearly all the time.
func TestMain(m *testing.M) {
	testbroker.Together(6)
	goleak.VerifyTestMain(testbroker.Main(m), leaktest.Libraries()...)
}
