package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
)

// childArgs makes the test binary be the program: tests kill it.
const childArgs = "TURNTABLE_TOPOLOGY_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childArgs) != "" {
		main()
	}
	goleak.VerifyTestMain(m, leaktest.Libraries()...)
}
