package turns

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/internal/testing/wiretest"
	"github.com/turntable-streams/turntable/processors"
)

// guarantees are those that every test without kills runs under.
var guarantees = []processors.Guarantee{processors.AtLeastOnce, processors.ExactlyOnce}

// both runs a test under each guarantee, beside others.
func both(t *testing.T, test func(t *testing.T, guarantee processors.Guarantee)) {
	t.Helper()
	for _, g := range testbroker.Guarantees(t, guarantees...) {
		t.Run(string(g), func(t *testing.T) {
			t.Parallel()
			test(t, g)
		})
	}
}

// judging are the options of a judge of an agent's records, with which a guarantee is kept.
func judging(guarantee processors.Guarantee, more ...wiretest.OracleOption) []wiretest.OracleOption {
	options := append([]wiretest.OracleOption{wiretest.WaitLimit(time.Minute)}, more...)
	if guarantee == processors.ExactlyOnce {
		options = append(options, wiretest.ExactlyOnce())
	}
	return options
}

// kept waits until all promises of the turn are kept, and returns the report.
func kept(ctx context.Context, t testing.TB, c config, more ...wiretest.OracleOption) wiretest.Report {
	t.Helper()
	oracle, err := wiretest.NewOracle(ctx, c.brokers, c.agent, judging(c.guarantee, more...)...)
	require.NoError(t, err)
	defer oracle.Close()
	report, err := oracle.Settle(ctx)
	require.NoError(t, err, report.String())
	require.True(t, report.Kept(), report.String())
	return report
}
