package integration

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/worker"
)

// killsVariable is the environment variable with the number of kills. If it is set, calls take as long as those of a real
// model, at a tenth of the time, and the waits are judged.
const killsVariable = "TURNTABLE_KILLS"

// scale is the size of a run.
type scale struct {
	kills             int
	shortest, longest time.Duration // calls
	every             time.Duration // between two messages
	between           int           // outputs between two kills at most
	judgeWaits        bool
}

func scaleOf(t *testing.T) scale {
	text := os.Getenv(killsVariable)
	if text == "" {
		return scale{2, 50 * time.Millisecond, 1500 * time.Millisecond, 100 * time.Millisecond, 20, false}
	}
	kills, err := strconv.Atoi(text)
	require.NoError(t, err, killsVariable)
	return scale{kills, 200 * time.Millisecond, 4 * time.Second, 125 * time.Millisecond, 32, true}
}

// guarantees are those of the turn.
var guarantees = []processors.Guarantee{processors.AtLeastOnce, processors.ExactlyOnce}

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
	modes := []worker.Mode{worker.ConsumerGroup}
	if testbroker.ShareGroups() {
		modes = []worker.Mode{worker.ShareGroup, worker.ConsumerGroup}
	}
	for _, mode := range modes {
		for _, guarantee := range guarantees {
			t.Run(fmt.Sprintf("%s/%s", mode, guarantee), func(t *testing.T) {
				s := scaleOf(t)
				if testbroker.Embedded && !s.judgeWaits {
					t.Parallel()
				}
				deployKillAndHang(t, mode, guarantee, s)
			})
		}
	}
}

func deployKillAndHang(t *testing.T, mode worker.Mode, guarantee processors.Guarantee, s scale) {
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	f := &fleet{agent: newAgent(t, guarantee), mode: mode, model: newProvider(t, s.length), all: map[string]*modelWorker{}}
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
	for range s.kills {
		next := f.kill(random)
		f.progress(1 + random.IntN(s.between))
		if random.IntN(4) > 0 { // otherwise the next kill may meet a group that has not recovered from this one
			f.joined(next)
		}
	}
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
		require.LessOrEqual(t, hang.longestGap, lock+besideCalls)
	}
}
