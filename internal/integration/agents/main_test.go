package agents

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
)

func TestMain(m *testing.M) {
	if rate := os.Getenv(streamRate); rate != "" {
		stream(rate)
		return
	}
	if os.Getenv(streamBroker) != "" {
		serveBroker()
		return
	}
	goleak.VerifyTestMain(testbroker.Main(m), leaktest.Libraries()...)
}
