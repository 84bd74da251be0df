package agent_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/failing"
	"github.com/turntable-streams/turntable/processors/agent/agenttest"
	"github.com/turntable-streams/turntable/processors/turn/think"
)

// Each iteration is a test: the agent is made, and its turn needs a tool and a person.
// cpu-ms/op is what it takes of the processors, which other programs on the machine do not change.
func BenchmarkTest(b *testing.B) {
	before := used(b)
	for b.Loop() {
		tb := failing.Run(func(tb *failing.TB) {
			s := agenttest.New(tb, newShop().Agent)
			askRefund(s)
			s.Approve("s-1")
			s.Model(think.Say("Done."))
			s.Answer("s-1")
		})
		if tb.Failed() {
			b.Fatal(tb.Errors())
		}
	}
	b.ReportMetric((used(b)-before).Seconds()*1000/float64(b.N), "cpu-ms/op")
}

// used returns the time that this process has used of the processors.
func used(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
