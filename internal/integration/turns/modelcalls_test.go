package turns

import (
	"context"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/worker"
)

// measured reports whether the number of kills is set. Then calls take as long as those of a real model, at a tenth of the time,
// and the waits are judged.
func measured() bool { return os.Getenv("TURNTABLE_KILLS") != "" }

// scale is the size of a run.
type scale struct {
	kills             int
	shortest, longest time.Duration // calls
	every             time.Duration // between two messages
	between           int           // outputs between two kills at most
	judgeWaits        bool
}

func scaleOf(t *testing.T) scale {
	if !measured() {
		return scale{2, 50 * time.Millisecond, 1500 * time.Millisecond, 100 * time.Millisecond, 20, false}
	}
	return scale{kill.Size(t, "TURNTABLE_KILLS", 0), 200 * time.Millisecond, 4 * time.Second, 125 * time.Millisecond, 32, true}
}

// length returns how long a call of a session takes. Most are short: the median is 1.8 times the shortest, and one in ten
// takes longer than a quarter of the longest.
func (s scale) length(session string) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(session)) // never returns an error
	u := rand.New(rand.NewPCG(h.Sum64(), 0)).Float64()
	return time.Duration(float64(s.shortest) * math.Pow(float64(s.longest)/float64(s.shortest), u*u))
}

// Three model workers, each a process, answer a steady load of turns. A rolling deployment replaces all of them, then
// random ones are killed, then one hangs for longer than its lock or session. The provider counts the calls of each step.
func TestModelCallsAreRepeatedOnlyAfterCrashes(t *testing.T) {
	test := func(mode worker.Mode, guarantees ...processors.Guarantee) {
		t.Run(mode.String(), func(t *testing.T) {
			s := scaleOf(t)
			beside := testbroker.Embedded && !s.judgeWaits
			if beside {
				t.Parallel()
			}
			kill.Guarantees(t, func(t *testing.T, guarantee processors.Guarantee) {
				if beside {
					t.Parallel()
				}
				deployKillAndHang(t, mode, guarantee, s)
			}, guarantees...)
		})
	}
	if testbroker.ShareGroups() {
		test(worker.ShareGroup, processors.ExactlyOnce, processors.AtLeastOnce)
	}
	test(worker.ConsumerGroup, processors.AtLeastOnce, processors.ExactlyOnce)
}

func deployKillAndHang(t *testing.T, mode worker.Mode, guarantee processors.Guarantee, s scale) {
	f := &fleet{agent: newAgent(t, guarantee, turn.Config{}), mode: mode, model: newProvider(t, s.length), all: map[string]*modelWorker{}}
	stopFeed := f.feed(s.every)
	for range 3 {
		f.running = append(f.running, f.start())
	}
	for _, w := range f.running {
		f.joined(w)
	}
	started := time.Now()
	f.deploy()
	f.progress(20)
	deployed := f.settle()
	loop := &kill.Loop{
		Seed: rand.Uint64(), Kills: s.kills, Victims: len(f.running), Launch: f.launch, Progress: f.ended,
		Brokers: f.brokers, Agents: []string{f.name},
		When: func(random *rand.Rand, _, done int) (int, time.Duration) { return done + 1 + random.IntN(s.between), 0 },
		Before: func(_ context.Context, random *rand.Rand) error {
			if f.latest != nil && random.IntN(4) > 0 { // otherwise a kill may meet a group that has not recovered from the one before
				f.joined(f.latest)
			}
			return nil
		},
	}
	loop.Run(t.Context(), t)
	killed := f.settle()
	f.hang()
	stopFeed()
	hung := f.settle()
	for _, w := range f.running {
		f.stop(w)
	}

	report := f.judge(guarantee)
	start, deployment := f.judgeCalls(time.Time{}, started), f.judgeCalls(started, deployed)
	kills, hang := f.judgeCalls(deployed, killed), f.judgeCalls(killed, hung)
	require.Equal(t, report.Counts.Messages, start.steps+deployment.steps+kills.steps+hang.steps, "messages without a call")
	require.Equal(t, report.Counts.Errors, kills.failed+hang.failed)
	require.Equal(t, deployment.steps, deployment.calls, "calls over the deployment")
	t.Logf("deployment: %s", deployment)
	t.Logf("%d kills: %s", s.kills, kills)
	t.Logf("hung for %s: %s", round(f.running[0].paused()), hang)
	if s.judgeWaits && mode == worker.ShareGroup {
		require.Zero(t, deployment.slow+kills.slow, "sessions that waited longer than %s", besideCalls)
		require.LessOrEqual(t, hang.longestGap, modelLock+besideCalls)
	}
}
