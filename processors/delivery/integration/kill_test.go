package integration

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/topics"
)

// count is how many deliveries run while something is killed; DELIVERIES sets it.
func count(t *testing.T, usual int) int {
	t.Helper()
	text := os.Getenv("DELIVERIES")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

func TestEveryDeliveryEndsWhileAllAreKilled(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		n := count(t, 150)
		r := newRig(t, guarantee, delivery.WithDefaultService(delivery.Service{
			Budget: time.Minute, Initial: 20 * time.Millisecond, Longest: 300 * time.Millisecond, Attempts: 1000,
		}), delivery.WithBreaker(delivery.Breaker{Failures: 5, Open: 50 * time.Millisecond, Longest: 100 * time.Millisecond}))
		group := r.run(delivery.Graph, "deliveries")
		receiver := newReceiver(t)
		mapping := "harbor:http://" + receiver.address
		kill := r.sink(mapping, "sink-0")
		r.watch()
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		kills := map[string]int{}
		pause := time.NewTicker(3 * time.Millisecond)
		defer pause.Stop()
		for i := range n {
			r.ask(number(i), "harbor", i%2 == 0)
			<-pause.C
			if i%25 != 24 {
				continue
			}
			switch what := random.IntN(3); what {
			case 0:
				kill()
				kill = r.sink(mapping, "sink-"+strconv.Itoa(i))
				kills["sink"]++
			case 1:
				group.Kill()
				group.stop()
				group = r.run(delivery.Graph, "deliveries")
				kills["processor"]++
			default:
				receiver.kill()
				<-pause.C
				receiver.restart()
				kills["receiver"]++
			}
		}
		require.Equal(t, map[topics.Outcome]int{topics.OutcomeDelivered: n}, r.await(n))
		bodies, repeats := receiver.taken()
		require.Len(t, bodies, n)
		t.Logf("%d deliveries, kills %v, %d repeats that the receiver dropped", n, kills, repeats)
	})
}
