package capabilities

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
)

func TestMain(m *testing.M) {
	kill.Main(kill.Programs{
		"gates": kill.Of(runGates), roleProcessor: kill.Of(runDeliveries), roleSink: kill.Of(runSink),
	})
	testbroker.Together(4)
	goleak.VerifyTestMain(testbroker.Main(m), leaktest.Libraries()...)
}
