package main

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
)

func TestMain(m *testing.M) {
	if isChild() {
		main() // the test binary is the program of its children
	}
	// The SDK of Gemini links OpenCensus, which starts a goroutine when the program starts.
	goleak.VerifyTestMain(m, append(leaktest.Libraries(),
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))...)
}
