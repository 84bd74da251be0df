package whole

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	"github.com/turntable-streams/turntable/internal/testing/process"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors/crew/crewtest"
)

func TestMain(m *testing.M) {
	crewtest.Main()
	switch {
	case os.Getenv(crewRole) != "":
		process.Main(crewChild)
	case os.Getenv(channelWorker) != "":
		process.Main(channelChild)
	case os.Getenv(peerRole) != "":
		process.Main(peerChild)
	case os.Getenv(memoirRole) != "":
		process.Main(memoirChild)
	case os.Getenv(childAgent) != "":
		process.Main(gateChild)
	case os.Getenv(approvalAgent) != "":
		process.Main(approvalChild)
	}
	goleak.VerifyTestMain(testbroker.Main(m), leaktest.Libraries()...)
}
