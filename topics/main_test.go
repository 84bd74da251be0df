package topics

import (
	"testing"

	"go.uber.org/goleak"
)

// Sarama's metrics library starts one goroutine per process and never stops it.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}
