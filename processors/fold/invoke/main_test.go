package invoke

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	_ "github.com/turntable-streams/turntable/internal/testing/wirecheck" // validates what graphs write
)

// Most tests wait for brokers nearly all the time. Eight of them run at a time, unless -parallel says otherwise.
func TestMain(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set("8")
	}
	goleak.VerifyTestMain(m, leaktest.Libraries()...)
}
