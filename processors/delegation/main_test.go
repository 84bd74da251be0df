package delegation

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	_ "github.com/turntable-streams/turntable/internal/testing/wirecheck" // validates what graphs write
)

// Sarama's breaker for a topic that does not exist sleeps for 10 s after its producer is closed.
var breaker = goleak.IgnoreAnyFunction("github.com/eapache/go-resiliency/breaker.(*Breaker).timer")

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(testbroker.Main(m), append(leaktest.Libraries(), breaker)...)
}
