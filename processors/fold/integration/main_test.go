package integration

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/leaktest"
	"github.com/turntable-streams/turntable/internal/testbroker"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(testbroker.Main(m), leaktest.Libraries()...)
}
