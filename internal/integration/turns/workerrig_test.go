package turns

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors/worker"
)

// rig is a broker with the topics of a group, and a reader of what its workers say.
type rig struct {
	t       *testing.T
	brokers []string
	group   string
	mode    worker.Mode
	client  *kgo.Client

	mu    sync.Mutex
	lines []string
}

func newRig(t *testing.T, mode worker.Mode) *rig {
	t.Helper()
	return newRigAt(t, mode, testbroker.StartWithLock(t, workerLock))
}

func newRigAt(t *testing.T, mode worker.Mode, brokers []string) *rig {
	t.Helper()
	r := &rig{t: t, brokers: brokers, group: testbroker.Agent(), mode: mode}
	setup, err := kgo.NewClient(kgo.SeedBrokers(r.brokers...))
	require.NoError(t, err)
	defer setup.Close()
	admin := kadm.NewClient(setup)
	_, err = admin.CreateTopics(t.Context(), 4, 1, nil, r.group+"-in", r.group+"-calls")
	require.NoError(t, err)
	r.client, err = kgo.NewClient(kgo.SeedBrokers(r.brokers...), kgo.ConsumeTopics(r.group+"-calls"),
		kgo.FetchMaxWait(100*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	reading.Go(func() {
		for ctx.Err() == nil {
			r.client.PollFetches(ctx).EachRecord(func(rec *kgo.Record) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.lines = append(r.lines, string(rec.Value))
			})
		}
	})
	t.Cleanup(func() { cancel(); reading.Wait(); r.client.Close() })
	return r
}

// put writes records whose keys and values are names.
func (r *rig) put(names ...string) {
	r.t.Helper()
	for _, name := range names {
		rec := &kgo.Record{Topic: r.group + "-in", Key: []byte(name), Value: []byte(name)}
		require.NoError(r.t, r.client.ProduceSync(r.t.Context(), rec).FirstErr())
	}
}

// count returns how many lines begin so.
func (r *rig) count(prefix string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.lines {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

func (r *rig) until(prefix string, n int) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return r.count(prefix) >= n }, wait, 10*time.Millisecond, "%d of %s", n, prefix)
}

// fastOnce waits for the results of n fast calls, none of which was made twice.
func (r *rig) fastOnce(n int) {
	r.t.Helper()
	r.until("ended fast", n)
	r.mu.Lock()
	defer r.mu.Unlock()
	began := map[string]int{}
	for _, line := range r.lines {
		if f := strings.Fields(line); f[0] == "began" && strings.HasPrefix(f[1], "fast") {
			began[f[1]]++
			require.Equal(r.t, 1, began[f[1]], line)
		}
	}
	require.Len(r.t, began, n)
}

func names(prefix string, from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprintf("%s%03d", prefix, i))
	}
	return all
}

// spawn starts a worker process. The test kills it at its end.
func (r *rig) spawn(name string) *kill.Process {
	r.t.Helper()
	return kill.Start(r.t, workerProgram, workerChild{r.group, name, r.brokers, r.mode})
}
