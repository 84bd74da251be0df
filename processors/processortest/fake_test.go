package processortest_test

import (
	"github.com/turntable-streams/turntable/internal/testing/failing"
	"github.com/turntable-streams/turntable/processors/processortest"
)

// runFake runs a test function that must fail.
func runFake(body func(tb processortest.TB)) *failing.TB {
	return failing.Run(func(tb *failing.TB) { body(tb) })
}
