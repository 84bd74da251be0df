package integration

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// envInt returns the value of an environment variable, or a default.
func envInt(t *testing.T, variable string, missing int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return missing
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// The test kills sink, processor and receiver in random order during 1,000 deliveries (environment variable DELIVERIES). Set
// SEED to repeat the order of a run.
func TestEveryDeliveryEndsOnceWhileProcessesAreKilled(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		n := envInt(t, "DELIVERIES", 1000)
		seed := uint64(envInt(t, "SEED", int(rand.Uint32())))
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		r := newFixture(t, guarantee, killOptions()...)
		receiver := newReceiver(t)
		mapping := "harbor:http://" + receiver.address
		children := map[string]*child{roleProcessor: r.child(roleProcessor, ""), roleSink: r.child(roleSink, mapping)}
		r.watch()
		kills := map[string]int{}
		kill := func(role string) {
			kills[role]++
			if role == roleReceiver {
				receiver.kill()
				receiver.restart()
				return
			}
			children[role].kill()
			children[role] = r.child(role, mapping)
		}
		// A kill follows after this many more deliveries have ended, so that it hits a process at work and not at its start.
		const between = 80
		var next []string
		last := ""
		killed := 0
		pace := time.NewTicker(4 * time.Millisecond)
		defer pace.Stop()
		written, begun := 0, time.Now()
		for ended := 0; written < n || ended+between < n; ended = r.countEnded() {
			if written < n {
				r.writeRouteAndOutput(number(written), "harbor", written%2 == 0)
				written++
			}
			if ended >= killed+between {
				if len(next) == 0 {
					next = killOrder(random, last)
				}
				t.Logf("%v: %d have ended, killing the %s", time.Since(begun).Round(time.Millisecond), ended, next[0])
				kill(next[0])
				last, next, killed = next[0], next[1:], ended
			}
			<-pace.C
			if time.Since(begun) > waitLimit {
				t.Fatal(r.progress(written))
			}
		}
		for _, role := range []string{roleProcessor, roleSink, roleReceiver} {
			require.NotZero(t, kills[role], role)
		}
		require.Equal(t, map[topics.Outcome]int{topics.OutcomeDelivered: n}, r.await(n), "one final receipt each")

		// The receiver drops repeats by their Idempotency-Key, so it has each delivery once.
		bodies, repeats := receiver.taken()
		slices.Sort(bodies)
		require.Len(t, bodies, n)
		require.Len(t, slices.Compact(bodies), n)
		t.Logf("%d deliveries, kills %v, %d repeats that the receiver dropped", n, kills, repeats)
	})
}

// killOrder returns the roles in random order. The first is not last, because that one has just started.
func killOrder(random *rand.Rand, last string) []string {
	order := []string{roleProcessor, roleSink, roleReceiver}
	random.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
	if order[0] == last {
		order[0], order[2] = order[2], order[0]
	}
	return order
}
