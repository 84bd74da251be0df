package turns

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/internal/testing/wiretest"
	"github.com/turntable-streams/turntable/processors"
)

// A process that is killed and restarted immediately does not wait until its previous group session expires: it is a static
// member, and its tables are on disk. The test measures the time from the start of the new process to the next answer.
func TestRestartIsNotSilent(t *testing.T) {
	const session = 30 * time.Second
	restarts := kill.Size(t, "TURNTABLE_RESTARTS", 3)
	kill.Guarantees(t, func(t *testing.T, guarantee processors.Guarantee) {
		c := config{
			agent: testbroker.Agent(), instance: "i1", dir: t.TempDir(), brokers: testbroker.Start(t), guarantee: guarantee,
			child: settings{SessionMS: session.Milliseconds()},
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute+time.Duration(restarts)*session)
		defer cancel()
		require.NoError(t, wiretest.CreateTopics(ctx, c.brokers, c.agent, 2))
		load, err := wiretest.StartLoad(ctx, c.brokers, c.agent, wiretest.LoadOptions{Tools: 2, Concurrency: 4})
		require.NoError(t, err)
		i := spawn(t, c)
		require.True(t, answeredMore(ctx, load, 20))

		var longest, sum time.Duration
		for range restarts {
			i.kill(t)
			began := time.Now()
			i = spawn(t, c)
			<-i.Running() // what came before was its predecessor's
			require.True(t, answeredMore(ctx, load, 1))
			silence := time.Since(began)
			longest, sum = max(longest, silence), sum+silence
			require.True(t, answeredMore(ctx, load, 20))
		}
		t.Logf("%d restarts after SIGKILL: silence from the start of the process %s at most, %s on average",
			restarts, longest.Round(time.Millisecond), (sum / time.Duration(restarts)).Round(time.Millisecond))
		// A machine under load is slow, but not as slow as the session that a dynamic member waits out.
		require.Less(t, longest, session/2)
		load.Stop()
		require.NoError(t, load.Wait(ctx))
		require.NoError(t, load.Close())
		require.NoError(t, i.Stop())
	}, processors.AtLeastOnce, processors.ExactlyOnce)
}

// answeredMore waits until so many more turns have ended in an answer.
func answeredMore(ctx context.Context, load *wiretest.Load, more int) bool {
	start := load.Progress().Answered
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if load.Progress().Answered >= start+more {
				return true
			}
		case <-ctx.Done():
			return false
		}
	}
}
