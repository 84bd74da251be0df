package integration

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/leaktest"
)

func TestMain(m *testing.M) {
	if part := os.Getenv(childPart); part != "" {
		beChild(part)
	}
	goleak.VerifyTestMain(m, leaktest.Libraries()...)
}
