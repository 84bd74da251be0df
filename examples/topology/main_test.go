package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childArgs makes the test binary be the program: tests kill it.
const childArgs = "TURNTABLE_TOPOLOGY_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childArgs) != "" {
		main()
	}
	goleak.VerifyTestMain(m, ignored...)
}

// ignored are goroutines of dependencies that nothing ends.
var ignored = []goleak.Option{
	goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"), // Sarama's meters
}
