package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/process"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/topics"
)

// The environment variables of the child process, which runs the group of gates.
const (
	childAgent     = "TURNTABLE_GATE_CHILD_AGENT"
	childBrokers   = "TURNTABLE_GATE_CHILD_BROKERS"
	childGuarantee = "TURNTABLE_GATE_CHILD_GUARANTEE"
)

const killPartitions = 4

func runChild() error {
	agent := os.Getenv(childAgent)
	catalog, err := topics.For(agent, topics.WithGates())
	if err != nil {
		return err
	}
	graph, err := gate.Graph(agent)
	if err != nil {
		return err
	}
	p, err := processors.New(strings.Split(os.Getenv(childBrokers), ","), graph,
		options(catalog, "gates", processors.Guarantee(os.Getenv(childGuarantee)), killPartitions)...)
	if err != nil {
		return err
	}
	// The parent kills the child at the end of the test, too.
	if err := p.Run(context.Background()); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (f *fixture) child() *process.Process {
	f.t.Helper()
	return process.Spawn(f.t, childAgent+"="+f.agent, childBrokers+"="+strings.Join(f.brokers, ","),
		childGuarantee+"="+string(f.guarantee))
}

// size returns a parameter of the kill test, which an environment variable can set.
func size(t *testing.T, name string, usual int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// 200 gates (TURNTABLE_GATES) in 20 sessions under each guarantee. Two deciders, the requester's withdrawals and deadlines
// race for them, decisions are written before their requests, and the processor is killed again and again.
func TestEveryGateEndsInOneWayWhileTheProcessorIsKilled(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		n, kills := size(t, "TURNTABLE_GATES", 200), size(t, "TURNTABLE_KILLS", 4)
		seed := uint64(size(t, "SEED", int(rand.Uint32())))
		t.Logf("seed %d", seed)
		f := newFixture(t, guarantee, killPartitions)
		f.run(gate.GrantsGraph, "grants")
		f.watch()
		child := f.child()

		// The writers stay at most this many gates ahead of the outcomes, so that every kill hits a process at work.
		const ahead = 20
		var writers sync.WaitGroup
		write := func(writer uint64, record func(random *rand.Rand, i int, session, id string)) {
			random := rand.New(rand.NewPCG(seed, writer))
			writers.Go(func() {
				for i := range n {
					for f.ended()+ahead < i && f.t.Context().Err() == nil {
						pause := time.NewTimer(time.Millisecond)
						<-pause.C
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
		for i := range kills {
			require.Eventually(t, func() bool { return f.ended() >= n*(i+1)/(kills+1) }, waitLimit, time.Millisecond)
			require.Less(t, f.ended(), n)
			require.NoError(t, child.Process.Kill())
			<-child.Ended
			child = f.child()
		}
		writers.Wait()
		require.Eventually(t, func() bool { return f.ended() == n }, waitLimit, 10*time.Millisecond)

		repeats := 0
		count := map[topics.GateStatus]int{}
		for i := range n {
			list := f.of(fmt.Sprint("g", i))
			repeats += len(list) - 1
			count[list[0].Status]++
			for _, o := range list {
				require.Equal(t, list[0], o, "all records of an outcome are the same")
			}
			if o := list[0]; o.Status == topics.GateApproved {
				require.Equal(t, "approve-"+o.GateID, o.DecisionID)
			}
		}
		if guarantee == processors.ExactlyOnce {
			require.Zero(t, repeats)
		}
		t.Logf("%d gates, %d kills, %d repeats: %v", n, kills, repeats, count)
	})
}
