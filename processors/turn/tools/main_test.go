package tools_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
)

// The tests of pipelines wait for their brokers nearly all the time.
func TestMain(m *testing.M) {
	testbroker.Together(6)
	goleak.VerifyTestMain(m, leaktest.Libraries()...)
}
