package host

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors/crew/crewtest"
)

// programs are what child processes of the tests may be.
var programs = kill.Programs{hostProgram: kill.Of(runHost)}

func TestMain(m *testing.M) {
	crewtest.Main()
	// The agents are race-enabled binaries, too, which otherwise sleep for a second when they end.
	_ = os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	kill.Main(programs)
	goleak.VerifyTestMain(testbroker.Main(m), leaktest.Libraries()...)
}
