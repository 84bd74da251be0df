package testbroker

import (
	"hash/fnv"
	"os"
	"testing"
)

// Guarantees returns the guarantees under which a test runs: all, or with TURNTABLE_GUARANTEES=one the one that the test's name
// chooses. Runs on several brokers, or under the race detector, take one each where another run takes all.
func Guarantees[G ~string](t testing.TB, all ...G) []G { return GuaranteesOf(t.Name(), all...) }

// GuaranteesOf is Guarantees for a case with a name.
func GuaranteesOf[G ~string](name string, all ...G) []G {
	if os.Getenv("TURNTABLE_GUARANTEES") != "one" {
		return all
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	i := int(h.Sum32()) % len(all)
	return all[i : i+1]
}
