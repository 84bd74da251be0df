//go:build kafka

package turns

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/processors"
)

const (
	// outagesVariable is the environment variable with how long outages follow one another, 20s by default.
	outagesVariable = "TURNTABLE_OUTAGES"
	// stallLimit is the longest time from the end of an outage until turns end again.
	stallLimit = 45 * time.Second
	// longestOutage is longer than the session timeout of the process.
	longestOutage = 10 * time.Second
)

// One outage follows another: of the broker, of connections, of the process. After each, turns end again within the limit. In the
// end no record was lost, and none is repeated for readers of committed records.
func TestOutagesUnderExactlyOnce(t *testing.T) {
	lasts := 20 * time.Second
	if text := os.Getenv(outagesVariable); text != "" {
		var err error
		lasts, err = time.ParseDuration(text)
		require.NoError(t, err, outagesVariable)
	}
	playAll(t, []fault{{
		name: fmt.Sprintf("outages for %s", lasts), only: processors.ExactlyOnce, alone: true, cluster: one, limit: lasts + wait,
		play: func(f *field) { outages(f, lasts) },
	}})
}

func outages(f *field, lasts time.Duration) {
	seed := uint64(time.Now().UnixNano())
	f.Logf("seed %d", seed)
	w := &wire{ctx: f.ctx, random: rand.New(rand.NewPCG(seed, 0))}
	_, addrs := newTap(f, f.brokers, func(r request) verdict {
		if judge := w.judge.Load(); judge != nil {
			return (*judge)(r)
		}
		return pass
	})
	process := f.start("a", func(c *config) { c.brokers = addrs })
	f.ask()
	f.answered(10)
	var longest time.Duration
	count := 0
	for end := time.Now().Add(lasts); time.Now().Before(end); count++ {
		name := f.outage(w, process)
		begun := time.Now()
		f.answered(5)
		took := time.Since(begun)
		longest = max(longest, took)
		require.Less(f, took, stallLimit, "turns ended again after %s", name)
	}
	f.figure("%d outages, the longest stall after one %s", count, round(longest))
}

// outage plays one, and returns its name when it is over.
func (f *field) outage(w *wire, process *instance) string {
	lasts := time.Second + time.Duration(w.random.Int64N(int64(longestOutage)))
	switch w.random.IntN(10) {
	case 0:
		require.NoError(f, f.cluster.Kill(1))
		require.NoError(f, f.cluster.Restart(f.ctx, 1))
		return "a kill of the broker"
	case 1:
		require.NoError(f, f.cluster.Pause(1))
		passes(f.ctx, lasts)
		require.NoError(f, f.cluster.Resume(1))
		return fmt.Sprintf("a pause of the broker for %s", lasts)
	case 2:
		require.NoError(f, process.Pause())
		passes(f.ctx, lasts)
		require.NoError(f, process.Resume())
		return fmt.Sprintf("a pause of the process for %s", lasts)
	default:
		return w.disturb(lasts)
	}
}

// wire disturbs the connections of the process.
type wire struct {
	ctx    context.Context
	random *rand.Rand
	judge  atomic.Pointer[func(request) verdict]
}

const allKinds kmsg.Key = -1

// disturbed are the kinds of requests of which one is disturbed.
var disturbed = []kmsg.Key{
	allKinds, kmsg.Produce, kmsg.Fetch, kmsg.Metadata, kmsg.FindCoordinator, kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat, kmsg.OffsetFetch,
	kmsg.ListOffsets, kmsg.InitProducerID, kmsg.AddPartitionsToTxn, kmsg.AddOffsetsToTxn, kmsg.TxnOffsetCommit, kmsg.EndTxn,
}

// disturb cuts, swallows or delays requests or answers for a time.
func (w *wire) disturb(lasts time.Duration) string {
	key, answers, manner := disturbed[w.random.IntN(len(disturbed))], w.random.IntN(2) == 0, w.random.IntN(3)
	delay := time.Second + time.Duration(w.random.Int64N(int64(8*time.Second)))
	judge := func(r request) verdict {
		if r.answered != answers || key != allKinds && r.Key != key {
			return pass
		}
		switch manner {
		case 0:
			return cutOff
		case 1:
			return swallow
		}
		passes(w.ctx, delay)
		return pass
	}
	w.judge.Store(&judge)
	passes(w.ctx, lasts)
	w.judge.Store(nil)
	what := map[bool]string{true: "answers", false: "requests"}[answers]
	kind := "all kinds"
	if key != allKinds {
		kind = key.Name()
	}
	return fmt.Sprintf("%s of %s for %s: %s", []string{"cuts", "swallows", "delays"}[manner], kind, lasts, what)
}

// passes blocks for a time.
func passes(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
