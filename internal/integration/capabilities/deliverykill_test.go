package capabilities

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// The test kills sink, processor and receiver in random order during 1,000 deliveries (TURNTABLE_DELIVERIES). Set
// SEED to repeat the order of a run.
func TestEveryDeliveryEndsOnceWhileProcessesAreKilled(t *testing.T) {
	n := kill.Size(t, "TURNTABLE_DELIVERIES", 1000)
	kill.Guarantees(t, func(t *testing.T, guarantee processors.Guarantee) {
		seed := uint64(kill.Size(t, "SEED", int(rand.Uint32())))
		t.Logf("seed %d", seed)
		r := newDeliveryRig(t, guarantee, killOptions())
		receiver := newReceiver(t)
		c := deliveryChild{Agent: r.agent, Brokers: r.brokers, Guarantee: guarantee, Mapping: "harbor:http://" + receiver.address}
		r.watch()
		// A kill follows after this many more deliveries have ended, so that it hits a process at work and not at its start.
		const between = 80
		kills, last, begun := map[int]int{}, -1, time.Now()
		var next []int
		loop := &kill.Loop{
			Seed: seed, Kills: max(len(roles), n/(between+20)), Victims: len(roles), Work: n, Progress: r.countEnded,
			Launch: func(role int) kill.Victim {
				if roles[role] == roleReceiver {
					if kills[role] > 0 {
						receiver.restart()
					}
					return receiver
				}
				return kill.Start(t, roles[role], c)
			},
			Clients: func(ctx context.Context) error { return r.writeAll(ctx, n) },
			When:    func(_ *rand.Rand, _, done int) (int, time.Duration) { return done + between, 0 },
			Choose: func(random *rand.Rand) int {
				if len(next) == 0 {
					next = killOrder(random, last)
				}
				last, next = next[0], next[1:]
				kills[last]++
				t.Logf("%v: %d have ended, killing the %s", time.Since(begun).Round(time.Millisecond), r.countEnded(), roles[last])
				return last
			},
			Judge: func() {
				for role := range roles {
					require.NotZero(t, kills[role], roles[role])
				}
				require.Equal(t, map[topics.Outcome]int{topics.OutcomeDelivered: n}, r.await(n), "one final receipt each")

				// The receiver drops repeats by their Idempotency-Key, so it has each delivery once.
				bodies, repeats := receiver.taken()
				slices.Sort(bodies)
				require.Len(t, bodies, n)
				require.Len(t, slices.Compact(bodies), n)
				t.Logf("%d deliveries, kills %v, %d repeats that the receiver dropped", n, kills, repeats)
			},
			Brokers: r.brokers, Agents: []string{r.agent}, Where: func() string { return r.progress(n) },
		}
		ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
		defer cancel()
		loop.Run(ctx, t)
	}, processors.ExactlyOnce, processors.AtLeastOnce)
}

// writeAll writes n outputs, each before or after its route, and waits until their deliveries have ended.
func (r *deliveryRig) writeAll(ctx context.Context, n int) error {
	pace := time.NewTicker(4 * time.Millisecond)
	defer pace.Stop()
	for written := 0; written < n || r.countEnded() < n; <-pace.C {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if written < n {
			r.writeRouteAndOutput(number(written), "harbor", written%2 == 0)
			written++
		}
	}
	return nil
}

// killOrder returns the roles in random order. The first is not last, because that one has just started.
func killOrder(random *rand.Rand, last int) []int {
	order := random.Perm(len(roles))
	if order[0] == last {
		order[0], order[2] = order[2], order[0]
	}
	return order
}
