package turns

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/internal/testing/wiretest"
	"github.com/turntable-streams/turntable/processors"
)

// longestWait is the longest that a user waited in the README's table of kills. Beyond it the kills pause: what a message
// waits for from then on is the pipeline's doing, and not that of kills that come faster than a process starts.
const longestWait = 2500 * time.Millisecond

// answerLimit is how long a message may be without its output.
const answerLimit = longestWait + 5*time.Second

// A process is killed with SIGKILL at random moments while turns with three tools run, whose results are so large that
// they are stored separately from their row. Every turn ends in exactly one output within answerLimit; repeats carry the
// same id. The workers outlive the process. They drop the records that they have answered before, or answer them again.
func TestTurnsSurviveKills(t *testing.T) {
	for name, drop := range map[string]bool{"workers drop repeats": true, "workers answer repeats": false} {
		t.Run(name, func(t *testing.T) {
			order := []processors.Guarantee{processors.AtLeastOnce, processors.ExactlyOnce}
			if drop {
				slices.Reverse(order)
			}
			kill.Guarantees(t, func(t *testing.T, guarantee processors.Guarantee) { surviveKills(t, guarantee, drop) }, order...)
		})
	}
}

func surviveKills(t *testing.T, guarantee processors.Guarantee, dropRepeats bool) {
	kills, turns, instances := kill.Size(t, "TURNTABLE_KILLS", 3), kill.Size(t, "TURNTABLE_TURNS", 30), kill.Size(t, "TURNTABLE_INSTANCES", 1)
	c := config{
		agent: testbroker.Agent(), instance: "i1", dir: t.TempDir(), brokers: testbroker.Start(t), guarantee: guarantee,
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute+time.Duration(kills)*10*time.Second)
	defer cancel()
	require.NoError(t, wiretest.CreateTopics(ctx, c.brokers, c.agent, 2))

	ledger := wiretest.NewLedger()
	load, err := wiretest.StartLoad(ctx, c.brokers, c.agent, wiretest.LoadOptions{
		Turns: turns, Steps: 2, Tools: 3, Concurrency: 6, Ledger: ledger, DropRepeats: dropRepeats, Limit: answerLimit,
		Deeds: []wiretest.Deed{wiretest.DeedLong, wiretest.DeedOK, wiretest.DeedLong},
	})
	require.NoError(t, err)
	running := make([]*instance, instances)
	var starts silence
	loop := &kill.Loop{
		Seed: 1, Kills: kills, Victims: instances, Work: turns, Clients: load.Wait, Brokers: c.brokers, Agents: []string{c.agent},
		Progress: func() int { return load.Progress().Answered },
		Launch: func(n int) kill.Victim {
			one := c
			one.instance, one.dir = fmt.Sprintf("i%d", n+1), filepath.Join(c.dir, strconv.Itoa(n))
			began := time.Now()
			running[n] = spawn(t, one)
			starts.after(ctx, load, running[n], began)
			return running[n]
		},
		// Some kills meet a process that recovers, most one in the middle of turns.
		When: func(random *rand.Rand, _, done int) (int, time.Duration) {
			return done + 1 + random.IntN(1+turns/kills), 20*time.Millisecond + time.Duration(random.IntN(800))*time.Millisecond
		},
		Before: func(ctx context.Context, _ *rand.Rand) error {
			return kill.Until(ctx, func() bool { return load.Progress().Oldest < longestWait })
		},
		Where: func() string { return fmt.Sprintf("%+v", load.Progress()) },
		Judge: func() {
			p := load.Progress()
			require.NoError(t, load.Close())
			require.Zero(t, p.Lost, "messages had no output within %s: %+v", answerLimit, p)
			for _, i := range running {
				require.NoError(t, i.Stop())
			}
			starts.watched.Wait()
			report := kept(ctx, t, c, wiretest.JudgeBy(ledger))
			require.Equal(t, turns, report.Counts.Messages)
			t.Logf("%d kills of %d instances: a user waited for %s at most, from question to answer; from a process's "+
				"start to the next answer it was %s at most, of %d; workers dropped %d repeats: %s", kills, len(running),
				round(p.Max), round(starts.longest), starts.count, p.Dropped, report)
		},
	}
	loop.Run(ctx, t)
}

// silence is the time from the start of processes to the next answer that a user gets when they run.
type silence struct {
	watched sync.WaitGroup

	mu      sync.Mutex
	longest time.Duration
	count   int
}

// after watches one start. An answer that comes before the process runs is another's, or its predecessor's. A process
// that is killed before the next answer counts for nothing: then it is its successor that is waited for.
func (s *silence) after(ctx context.Context, load *wiretest.Load, i *instance, began time.Time) {
	s.watched.Go(func() {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			select {
			case <-i.Ended():
				cancel()
			case <-ctx.Done():
			}
		}()
		select {
		case <-i.Running():
		case <-ctx.Done():
			return
		}
		if !answeredMore(ctx, load, 1) {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.longest, s.count = max(s.longest, time.Since(began)), s.count+1
	})
}

// progressed waits until so many more turns have ended, or for the time at most.
func progressed(ctx context.Context, load *wiretest.Load, more int, limit time.Duration) {
	start := load.Progress()
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if p := load.Progress(); more > 0 && p.Answered >= start.Answered+more {
				return
			}
		case <-timeout.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
