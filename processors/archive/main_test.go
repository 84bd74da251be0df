package archive

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
)

func TestMain(m *testing.M) {
	kill.Main(kill.Programs{"archive": kill.Of(runChild)})
	testbroker.Together(4)
	goleak.VerifyTestMain(testbroker.Main(m), leaktest.Libraries()...)
}
