package integration

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/leaktest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childAgent) != "" {
		os.Exit(child())
	}
	goleak.VerifyTestMain(tests(m), leaktest.Libraries()...)
}
