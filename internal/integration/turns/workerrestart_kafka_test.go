//go:build kafka

package turns

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/kafkatest"
	"github.com/turntable-streams/turntable/processors/worker"
)

func TestRestartOfTheBrokerLosesAndRepeatsNothing(t *testing.T) {
	cluster := kafkatest.New(t, kafkatest.Options{})
	r := newRigAt(t, worker.ShareGroup, cluster.Bootstrap())
	began, release, ended := make(chan worker.Record, 100), make(chan struct{}), make(chan worker.Record, 100)
	handle := func(ctx context.Context, rec worker.Record) error {
		began <- rec
		if string(rec.Value) == "slow" {
			select {
			case <-release:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		ended <- rec
		return nil
	}
	r.run(handle, worker.Config{Lock: 30 * time.Second})
	r.put("slow")
	require.Equal(t, "slow", string((<-began).Value))
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	require.NoError(t, cluster.Kill(1))
	require.NoError(t, cluster.Restart(ctx, 1))
	r.put(names("fast", 0, 20)...)
	seen := map[string]int{}
	for range 20 {
		seen[string((<-ended).Value)]++
	}
	require.Len(t, seen, 20)
	close(release)
	require.Equal(t, "slow", string((<-ended).Value))
	// The broker forgot who had the record. This worker, the only one, acquired it again for the call that was running.
	require.Never(t, func() bool { return len(began) > 20 }, 3*time.Second, 50*time.Millisecond)
}
