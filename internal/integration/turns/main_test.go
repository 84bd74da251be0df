package turns

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
)

// waiting is how many of the tests run at a time that may run beside others: what they do most is wait for brokers,
// sessions and processes.
const waiting = 6

// The programs of child processes.
const (
	turnsProgram  = "turns"
	modelProgram  = "model"
	workerProgram = "worker"
)

func TestMain(m *testing.M) {
	kill.Main(kill.Programs{turnsProgram: kill.Of(runTurns), modelProgram: kill.Of(runModel), workerProgram: kill.Of(runWorker)})
	testbroker.Together(waiting)
	goleak.VerifyTestMain(testbroker.Main(m), leaktest.Libraries()...)
}
