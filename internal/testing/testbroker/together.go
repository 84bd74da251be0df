package testbroker

import (
	"flag"
	"fmt"
	"os"
	"strconv"
)

// Together sets how many parallel tests run at a time, unless -test.parallel says it. It is for tests that mostly wait, for
// brokers, sessions and processes. TestMain calls it first.
func Together(tests int) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if chosen {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(tests)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
