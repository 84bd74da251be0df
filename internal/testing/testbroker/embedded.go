//go:build !kafka

package testbroker

import (
	"testing"

	"github.com/turntable-streams/turntable/internal/embedded"
)

// Embedded says which broker Start starts.
const Embedded = true

// Start is where to bootstrap from: a broker of the test's own, which ends with it. Where there is none to be had, the
// test fails. Topics that do not say how many partitions they want have one.
func Start(tb testing.TB) []string {
	tb.Helper()
	b, err := embedded.Start()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := b.Close(); err != nil {
			tb.Error(err)
		}
	})
	return b.Addrs()
}

// Main is how a binary that calls Start runs its tests: goleak.VerifyTestMain(testbroker.Main(m)).
func Main(m TestingM) TestingM { return m }
