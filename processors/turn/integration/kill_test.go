package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/internal/testing/wiretest"
	"github.com/turntable-streams/turntable/processors"
)

// The long forms; `make chaos` sets them.
const (
	killsVariable     = "TURNTABLE_KILLS"
	turnsVariable     = "TURNTABLE_TURNS"
	sessionsVariable  = "TURNTABLE_SESSIONS" // of an attack
	restartsVariable  = "TURNTABLE_RESTARTS"
	instancesVariable = "TURNTABLE_INSTANCES" // of the pipeline, one of which is killed at a time
)

func fromEnv(t *testing.T, name string, value int) int {
	t.Helper()
	if text := os.Getenv(name); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err, name)
		return n
	}
	return value
}

// longestWait is the longest that a user waited in the README's table of kills. Beyond it the kills pause: what a message
// waits for from then on is the pipeline's doing, and not that of kills that come faster than a process starts.
const longestWait = 2500 * time.Millisecond

// waitLimit is how long a message may be without its output.
const waitLimit = longestWait + 5*time.Second

// A process is killed with SIGKILL at random moments while turns with three tools run, whose results are so large that
// they are stored separately from their row. Every turn ends in exactly one output within waitLimit; repeats carry the
// same id. The workers outlive the process. They drop the records that they have answered before, or answer them again.
func TestTurnsSurviveKills(t *testing.T) {
	for _, guarantee := range modes {
		t.Run(string(guarantee)+"/workers drop repeats", func(t *testing.T) { surviveKills(t, guarantee, true) })
		t.Run(string(guarantee)+"/workers answer repeats", func(t *testing.T) { surviveKills(t, guarantee, false) })
	}
}

func surviveKills(t *testing.T, guarantee processors.Guarantee, dropRepeats bool) {
	kills, turns := fromEnv(t, killsVariable, 3), fromEnv(t, turnsVariable, 30)
	c := config{
		agent: testbroker.Agent(), instance: "i1", dir: t.TempDir(), brokers: testbroker.Start(t), guarantee: guarantee,
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute+time.Duration(kills)*10*time.Second)
	defer cancel()
	require.NoError(t, wiretest.CreateTopics(ctx, c.brokers, c.agent, 2))

	ledger := wiretest.NewLedger()
	load, err := wiretest.StartLoad(ctx, c.brokers, c.agent, wiretest.LoadOptions{
		Turns: turns, Steps: 2, Tools: 3, Concurrency: 6, Ledger: ledger, DropRepeats: dropRepeats, Limit: waitLimit,
		Deeds: []wiretest.Deed{wiretest.DeedLong, wiretest.DeedOK, wiretest.DeedLong},
	})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- load.Wait(ctx) }()

	random := rand.New(rand.NewPCG(1, uint64(kills)))
	running := make([]*instance, fromEnv(t, instancesVariable, 1))
	var starts silence
	launch := func(n int) {
		one := c
		one.instance, one.dir = fmt.Sprintf("i%d", n+1), filepath.Join(c.dir, strconv.Itoa(n))
		began := time.Now()
		running[n] = spawn(t, one)
		starts.after(ctx, load, running[n], began)
	}
	for n := range running {
		launch(n)
	}
	for n := range kills {
		// Some kills meet a process that recovers, most one in the middle of turns.
		limit := 20*time.Millisecond + time.Duration(random.IntN(800))*time.Millisecond
		progressed(ctx, load, 1+random.IntN(1+turns/kills), limit)
		require.Eventually(t, func() bool { return load.Progress().Oldest < longestWait }, wait, 5*time.Millisecond)
		victim := random.IntN(len(running))
		running[victim].kill(t)
		launch(victim)
		if n%10 == 9 {
			t.Logf("%d kills: %+v", n+1, load.Progress())
		}
	}
	require.NoError(t, <-done)
	p := load.Progress()
	require.NoError(t, load.Close())
	require.Zero(t, p.Lost, "messages had no output within %s: %+v", waitLimit, p)
	for _, i := range running {
		require.NoError(t, i.stop())
	}
	starts.watched.Wait()

	options := []wiretest.OracleOption{wiretest.JudgeBy(ledger), wiretest.WaitLimit(time.Minute)}
	if guarantee == processors.ExactlyOnce {
		options = append(options, wiretest.ExactlyOnce())
	}
	oracle, err := wiretest.NewOracle(ctx, c.brokers, c.agent, options...)
	require.NoError(t, err)
	defer oracle.Close()
	report, err := oracle.Settle(ctx)
	require.NoError(t, err, report.String())
	require.True(t, report.Kept(), report.String())
	require.Equal(t, turns, report.Counts.Messages)
	t.Logf("%d kills of %d instances: a user waited for %s at most, from question to answer; from a process's "+
		"start to the next answer it was %s at most, of %d; workers dropped %d repeats: %s", kills, len(running),
		round(p.Max), round(starts.longest), starts.count, p.Dropped, report)
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
			case <-i.ended:
				cancel()
			case <-ctx.Done():
			}
		}()
		select {
		case <-i.running:
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
