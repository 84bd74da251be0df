package wiretest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLoadRunsAllTurnsWithoutViolations(t *testing.T) {
	bootstrap := broker(t, "agent", 2)
	startReference(t, bootstrap, "agent", reference{thinkTimeout: time.Minute, toolTimeout: time.Minute})
	ctx := deadline(t, 3*time.Minute)
	ledger := NewLedger()
	load, err := StartLoad(ctx, bootstrap, "agent", LoadOptions{
		Turns: 30, Tools: 3, Concurrency: 5, PerSession: 4, Ledger: ledger,
	})
	require.NoError(t, err)
	require.NoError(t, load.Wait(ctx))
	p := load.Progress()
	require.NoError(t, load.Close())
	require.Equal(t, 30, p.Asked)
	require.Equal(t, 30, p.Answered)
	require.Zero(t, p.Repeated)
	require.LessOrEqual(t, p.P50, p.P99)
	require.LessOrEqual(t, p.P99, p.Max)

	oracle, err := NewOracle(ctx, bootstrap, "agent", JudgeBy(ledger), ExactlyOnce())
	require.NoError(t, err)
	defer oracle.Close()
	r, err := oracle.Settle(ctx)
	require.NoError(t, err)
	require.True(t, r.Kept(), r)
	require.Equal(t, 30, r.Counts.Answers)
	require.Equal(t, 90, r.Counts.Calls)
	require.Equal(t, 30, r.Counts.ToolMessages)
}

func TestStoppedLoadFinishesItsOpenTurns(t *testing.T) {
	bootstrap := broker(t, "agent", 1)
	startReference(t, bootstrap, "agent", reference{thinkTimeout: time.Minute, toolTimeout: time.Minute})
	ctx := deadline(t, 3*time.Minute)
	load, err := StartLoad(ctx, bootstrap, "agent", LoadOptions{Concurrency: 3})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return load.Progress().Answered > 5 }, time.Minute, 5*time.Millisecond)
	load.Stop()
	require.NoError(t, load.Wait(ctx))
	p := load.Progress()
	require.Equal(t, p.Asked, p.Answered)
	require.NoError(t, load.Close())
}

func TestErrorOfALoadHasTheNumberOfOpenTurns(t *testing.T) {
	bootstrap := broker(t, "agent", 1)
	load, err := StartLoad(t.Context(), bootstrap, "agent", LoadOptions{Turns: 2, Concurrency: 2})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return load.Progress().Asked == 2 }, time.Minute, 5*time.Millisecond)
	require.Positive(t, load.Progress().Oldest)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.ErrorContains(t, load.Wait(ctx), "2 of 2 asked have no output")
	require.NoError(t, load.Close())
}

func TestTurnWithoutAnOutputIsLostAfterTheLimit(t *testing.T) {
	bootstrap := broker(t, "agent", 1)
	ctx := deadline(t, time.Minute)
	load, err := StartLoad(ctx, bootstrap, "agent", LoadOptions{Turns: 3, Concurrency: 2, Limit: time.Millisecond})
	require.NoError(t, err)
	require.NoError(t, load.Wait(ctx))
	require.Equal(t, 3, load.Progress().Lost)
	require.Zero(t, load.Progress().Oldest)
	require.NoError(t, load.Close())
}

func TestQuantilesAreWithinFourPercent(t *testing.T) {
	var h histogram
	require.Zero(t, h.quantile(0.5))
	for ms := 1; ms <= 1000; ms++ {
		h.add(time.Duration(ms) * time.Millisecond)
	}
	require.InEpsilon(t, float64(500*time.Millisecond), float64(h.quantile(0.5)), 0.05)
	require.InEpsilon(t, float64(990*time.Millisecond), float64(h.quantile(0.99)), 0.05)
	require.InEpsilon(t, float64(time.Second), float64(h.quantile(1)), 0.05)
	h.add(24 * time.Hour)
	require.Greater(t, h.quantile(1), time.Hour)
}
