package topics

import (
	"testing"

	"go.uber.org/goleak"
)

// Sarama's metrics have one goroutine for the whole process, for ever.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}
