package kill

import (
	"os"
	"strconv"
	"testing"
)

// Size is a size of a test: that of a usual run, or what an environment variable says, such as TURNTABLE_KILLS.
func Size(tb testing.TB, variable string, usual int) int {
	tb.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		tb.Fatalf("%s: %v", variable, err)
	}
	return n
}

// Long reports whether this is a long run, with TURNTABLE_LONG set.
func Long() bool { return os.Getenv("TURNTABLE_LONG") != "" }

// Guarantees runs a test under the first of the guarantees, and in a long run under each: what is different between them is
// under test elsewhere in every run, and a kill test takes long. Tests of neighbouring capabilities begin with different ones.
func Guarantees[G ~string](t *testing.T, test func(t *testing.T, guarantee G), guarantees ...G) {
	t.Helper()
	if !Long() {
		guarantees = guarantees[:1]
	}
	for _, g := range guarantees {
		t.Run(string(g), func(t *testing.T) { test(t, g) })
	}
}
