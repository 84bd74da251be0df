package integration

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// numberOf is what a variable says, or what is usual.
func numberOf(t *testing.T, variable string, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// Sink, processor and receiver are killed at random while 1,000 deliveries (DELIVERIES) run. SEED repeats a run's order
// of kills.
func TestEveryDeliveryEndsWhileAllAreKilled(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		n := numberOf(t, "DELIVERIES", 1000)
		seed := uint64(numberOf(t, "SEED", int(rand.Uint32())))
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		r := newRig(t, guarantee, underKills()...)
		receiver := newReceiver(t)
		mapping := "harbor:http://" + receiver.address
		parts := map[string]*child{partProcessor: r.child(partProcessor, ""), partSink: r.child(partSink, mapping)}
		r.watch()
		kills, member := map[string]int{}, ""
		kill := func(part string) {
			kills[part]++
			if part == partSink && testbroker.Embedded {
				member = r.joined(r.agent+"-delivery-sink", member)
			}
			if part == partReceiver {
				receiver.kill()
				receiver.restart()
				return
			}
			parts[part].kill()
			parts[part] = r.child(part, mapping)
		}
		// Something is killed when so many more deliveries have ended: in the midst of work, not while it starts.
		const between = 80
		var next []string
		last := ""
		killed := 0
		pace := time.NewTicker(4 * time.Millisecond)
		defer pace.Stop()
		asked, begun := 0, time.Now()
		for ended := 0; asked < n || ended+between < n; ended = r.endings() {
			if asked < n {
				r.ask(number(asked), "harbor", asked%2 == 0)
				asked++
			}
			if ended >= killed+between {
				if len(next) == 0 {
					next = []string{partProcessor, partSink, partReceiver}
					random.Shuffle(len(next), func(i, k int) { next[i], next[k] = next[k], next[i] })
					if next[0] == last { // it has hardly begun
						next[0], next[2] = next[2], next[0]
					}
				}
				t.Logf("%v: %d have ended, the %s is killed", time.Since(begun).Round(time.Millisecond), ended, next[0])
				kill(next[0])
				last, next, killed = next[0], next[1:], ended
			}
			<-pace.C
			if time.Since(begun) > patience {
				t.Fatal(r.standing(asked))
			}
		}
		for _, part := range []string{partProcessor, partSink, partReceiver} {
			require.NotZero(t, kills[part], part)
		}
		require.Equal(t, map[topics.Outcome]int{topics.OutcomeDelivered: n}, r.await(n), "one final receipt each")

		// The receiver drops repeats by their Idempotency-Key: it has each delivery once.
		bodies, repeats := receiver.taken()
		slices.Sort(bodies)
		require.Len(t, bodies, n)
		require.Len(t, slices.Compact(bodies), n)
		t.Logf("%d deliveries, kills %v, %d repeats that the receiver dropped", n, kills, repeats)
	})
}
