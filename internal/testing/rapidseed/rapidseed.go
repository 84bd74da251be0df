// Package rapidseed lets every property test of a run draw from one seed. Test files import it for its effect:
//
//	import _ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
//
// If the environment variable TURNTABLE_RAPID_SEED is set, it is the default of the flag -rapid.seed, and
// TURNTABLE_RAPID_CHECKS that of -rapid.checks. The variables exist because go test passes a flag to all packages, and
// those without property tests reject it. With one seed, a test run fails only for a change, and make property looks for
// new cases.
package rapidseed

import (
	"flag"
	"fmt"
	"os"

	_ "pgregory.net/rapid" // declares the flags
)

func init() {
	for variable, name := range map[string]string{
		"TURNTABLE_RAPID_SEED":   "rapid.seed",
		"TURNTABLE_RAPID_CHECKS": "rapid.checks",
	} {
		if value := os.Getenv(variable); value != "" {
			if err := flag.Set(name, value); err != nil {
				panic(fmt.Sprintf("%s=%s: %v", variable, value, err))
			}
		}
	}
}
