package wiretest

import (
	"flag"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
)

// The variables of package rapidseed, which has no tests of its own, set the flags of a binary with property tests.
func TestVariablesSetTheFlagsOfPropertyTests(t *testing.T) {
	if os.Getenv("RAPIDSEED_CHILD") != "" {
		require.Equal(t, "7", flag.Lookup("rapid.seed").Value.String())
		require.Equal(t, "3", flag.Lookup("rapid.checks").Value.String())
		return
	}
	run := func(seed string) error {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
		child.Env = append(os.Environ(), "RAPIDSEED_CHILD=1", "TURNTABLE_RAPID_SEED="+seed, "TURNTABLE_RAPID_CHECKS=3")
		return child.Run()
	}
	require.NoError(t, run("7"))
	require.Error(t, run("seven"))
}
