package turns

import (
	"cmp"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors/worker"
)

// best is the mode that Auto chooses for a new group on the broker of the tests.
func best() worker.Mode {
	if testbroker.ShareGroups() {
		return worker.ShareGroup
	}
	return worker.ConsumerGroup
}

// needShareGroups skips the test on a broker without share groups.
func needShareGroups(t *testing.T) {
	t.Helper()
	if !testbroker.ShareGroups() {
		t.Skip("the broker offers no share groups")
	}
}

// run runs a worker in this process until stop or the end of the test.
func (r *rig) run(handle worker.Handler, c worker.Config) (w *worker.Worker, stop func()) {
	r.t.Helper()
	c.Group, c.Lock, c.Drop = r.group, cmp.Or(c.Lock, workerLock), c.DeadLetter == nil
	w, err := worker.New([]string{r.group + "-in"}, handle, c)
	require.NoError(r.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx, r.brokers) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(r.t, <-ended)
	})
	r.t.Cleanup(stop)
	return w, stop
}

func TestBothModesHandleEachRecordOnce(t *testing.T) {
	for name, c := range map[string]struct {
		config worker.Config
		want   worker.Mode
	}{
		"auto":           {worker.Config{}, best()},
		"consumer group": {worker.Config{Mode: worker.ConsumerGroup}, worker.ConsumerGroup},
		"ordered":        {worker.Config{Ordered: true}, worker.ConsumerGroup},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.want)
			var mu sync.Mutex
			got := map[string]int{}
			handle := func(_ context.Context, rec worker.Record) error {
				mu.Lock()
				defer mu.Unlock()
				got[string(rec.Value)]++
				require.Equal(t, rec.Key, rec.Value)
				return nil
			}
			w, stop := r.run(handle, c.config)
			r.put(names("a", 0, 30)...)
			all := func(n int) func() bool {
				return func() bool { mu.Lock(); defer mu.Unlock(); return len(got) == n }
			}
			require.Eventually(t, all(30), wait, 10*time.Millisecond)
			require.Equal(t, c.want, w.Health().Mode)
			require.True(t, w.Ready())
			stop()
			require.False(t, w.Ready())
			r.put(names("b", 0, 10)...)
			r.run(handle, c.config)
			require.Eventually(t, all(40), wait, 10*time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			for name, calls := range got {
				require.Equal(t, 1, calls, name)
			}
		})
	}
}

func TestGroupWithCommittedOffsetsStaysAConsumerGroup(t *testing.T) {
	r := newRig(t, worker.ConsumerGroup)
	r.put(names("a", 0, 20)...)
	admin := kadm.NewClient(r.client)
	ends, err := admin.ListEndOffsets(t.Context(), r.group+"-in")
	require.NoError(t, err)
	require.NoError(t, admin.CommitAllOffsets(t.Context(), r.group, ends.Offsets()))
	got := make(chan string, 100)
	w, _ := r.run(func(_ context.Context, rec worker.Record) error {
		got <- string(rec.Value)
		return nil
	}, worker.Config{})
	require.Eventually(t, w.Ready, wait, 10*time.Millisecond)
	r.put("later")
	require.Equal(t, "later", <-got, "the group continues after its committed offsets")
	require.Equal(t, worker.ConsumerGroup, w.Health().Mode)
}
