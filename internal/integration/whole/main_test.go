package whole

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	_ "github.com/turntable-streams/turntable/internal/testing/wirecheck" // validates what graphs write
	"github.com/turntable-streams/turntable/processors/crew/crewtest"
)

func TestMain(m *testing.M) {
	crewtest.Main()
	kill.Main(programs)
	goleak.VerifyTestMain(testbroker.Main(m), leaktest.Libraries()...)
}
