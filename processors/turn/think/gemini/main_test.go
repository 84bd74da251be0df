package gemini_test

import (
	"testing"

	"go.uber.org/goleak"
)

// The SDK links OpenCensus, which starts a goroutine when the program starts.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}
