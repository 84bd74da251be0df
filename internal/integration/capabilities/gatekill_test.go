package capabilities

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/topics"
)

const gatePartitions = 4

// gateChild is the configuration of the process that is killed.
type gateChild struct {
	Agent     string
	Brokers   []string
	Guarantee processors.Guarantee
}

// runGates runs the group of gates.
func runGates(ctx context.Context, c gateChild) error {
	catalog, err := topics.For(c.Agent, topics.WithGates())
	if err != nil {
		return err
	}
	graph, err := gate.Graph(c.Agent, gate.Config{})
	if err != nil {
		return err
	}
	p, err := processors.New(c.Brokers, graph, append(options(catalog, c.Guarantee, gatePartitions, "gates"),
		processors.WithLogger(kill.Logger(zap.WarnLevel)))...)
	if err != nil {
		return err
	}
	return p.Run(ctx)
}

// 200 gates (TURNTABLE_GATES) in 20 sessions. Two deciders, the requester's withdrawals and deadlines
// race for them, decisions are written before their requests, and the processor is killed again and again.
func TestEveryGateEndsInOneWayWhileTheProcessorIsKilled(t *testing.T) {
	n := kill.Size(t, "TURNTABLE_GATES", 200)
	kill.Guarantees(t, func(t *testing.T, guarantee processors.Guarantee) {
		kills, seed := kill.Size(t, "TURNTABLE_KILLS", 4), uint64(kill.Size(t, "SEED", int(rand.Uint32())))
		t.Logf("seed %d", seed)
		f := newGateRig(t, guarantee, gatePartitions)
		f.run(gate.GrantsGraph, "grants")
		f.watch()
		loop := &kill.Loop{
			Seed: seed, Kills: kills, Victims: 1, Work: n, Progress: f.ended, Clients: f.race(seed, n),
			Launch: func(int) kill.Victim { return kill.Start(t, "gates", gateChild{f.agent, f.brokers, guarantee}) },
			When:   func(_ *rand.Rand, kill, _ int) (int, time.Duration) { return n * (kill + 1) / (kills + 1), 0 },
			Before: func(context.Context, *rand.Rand) error {
				if ended := f.ended(); ended >= n {
					return fmt.Errorf("all %d gates have ended before the last kill", ended)
				}
				return nil
			},
			Judge:   func() { f.judgeOutcomes(n, kills) },
			Brokers: f.brokers, Agents: []string{f.agent},
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*waitLimit)
		defer cancel()
		loop.Run(ctx, t)
	}, processors.AtLeastOnce, processors.ExactlyOnce)
}

// race has the writers write about n gates, and waits until all of them have ended.
func (f *gateRig) race(seed uint64, n int) func(context.Context) error {
	return func(ctx context.Context) error {
		// The writers stay at most this many gates ahead of the outcomes, so that every kill hits a process at work.
		const ahead = 20
		until := func(n int) error { return kill.Until(ctx, func() bool { return f.ended() >= n }) }
		var writers sync.WaitGroup
		write := func(writer uint64, record func(random *rand.Rand, i int, session, id string)) {
			random := rand.New(rand.NewPCG(seed, writer))
			writers.Go(func() {
				for i := range n {
					if until(i-ahead) != nil {
						return
					}
					record(random, i, fmt.Sprint("s", i%20), fmt.Sprint("g", i))
				}
			})
		}
		write(1, func(random *rand.Rand, _ int, session, id string) {
			wait := time.Duration(1+random.IntN(2000)) * time.Millisecond
			f.ask(session, id, time.Now().Add(wait))
			if random.IntN(5) == 0 {
				publish(f, f.topics.GateRequests, session, topics.GateRequest{
					GateID: id, SessionID: session, Withdrawn: topics.CauseSuperseded,
				})
			}
		})
		for decider, verdict := range []topics.GateVerdict{topics.VerdictApprove, topics.VerdictDeny} {
			write(uint64(2+decider), func(random *rand.Rand, i int, session, id string) {
				if random.IntN(3) > 0 {
					f.decide(session, id, fmt.Sprintf("%s-%s", verdict, id), verdict)
				}
			})
		}
		writers.Wait()
		return until(n)
	}
}

func (f *gateRig) judgeOutcomes(n, kills int) {
	require.Equal(f.tb, n, f.ended())
	repeats := 0
	count := map[topics.GateStatus]int{}
	for i := range n {
		list := f.of(fmt.Sprint("g", i))
		repeats += len(list) - 1
		count[list[0].Status]++
		for _, o := range list {
			require.Equal(f.tb, list[0], o, "all records of an outcome are the same")
		}
		if o := list[0]; o.Status == topics.GateApproved {
			require.Equal(f.tb, "approve-"+o.GateID, o.DecisionID)
		}
	}
	if f.guarantee == processors.ExactlyOnce {
		require.Zero(f.tb, repeats)
	}
	f.tb.Logf("%d gates, %d kills, %d repeats: %v", n, kills, repeats, count)
}
