package integration

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
)

// waiting is how many of the tests run at a time that may run beside others: what they do most is wait for brokers,
// sessions and processes.
const waiting = "6"

func TestMain(m *testing.M) {
	if os.Getenv(childAgent) != "" {
		os.Exit(child())
	}
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", waiting); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(testbroker.Main(m), leaktest.Libraries()...)
}
