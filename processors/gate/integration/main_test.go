package integration

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	"github.com/turntable-streams/turntable/internal/testing/process"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
)

func TestMain(m *testing.M) {
	if os.Getenv(childAgent) != "" {
		process.Main(runChild)
	}
	goleak.VerifyTestMain(testbroker.Main(m), leaktest.Libraries()...)
}
