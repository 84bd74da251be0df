package peer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/topics"
)

// A peer that is slow keeps a sink busy for minutes. Each attempt that the sink defers writes the whole request.
func TestWaitsForABusySinkGrow(t *testing.T) {
	p := newHarness(t)
	es, attempts := p.Handle(p.delegation(callID, asking)), 0
	for list := attemptsOf(t, es); len(list) > 0; list = attemptsOf(t, es) {
		attempts++
		deferred := p.receipt(list[0], topics.OutcomeDeferred, peerwire.Answer{})
		deferred.Receipt.Response = nil
		es = append(p.settle(deferred), p.advance(p.config.RetryLongest)...)
	}
	requireFailed(t, es, peerwire.CodeTimeout)
	require.Greater(t, attempts, 8)
	require.Less(t, attempts, 24)
	require.False(t, p.Read().Tasks[0].Reached)
}

func TestFailureEndsTheGrowthOfTheWaitsForABusySink(t *testing.T) {
	p := newHarness(t)
	es := p.Handle(p.delegation(callID, asking))
	for range 4 {
		p.Handle(p.receipt(attemptOf(t, es), topics.OutcomeDeferred, peerwire.Answer{}))
		es = p.advance(p.config.RetryLongest)
	}
	require.EqualValues(t, 4, p.Read().Tasks[0].Deferrals)
	p.Handle(p.offline(attemptOf(t, es)))
	require.Zero(t, p.Read().Tasks[0].Deferrals)
	require.LessOrEqual(t, p.Read().Tasks[0].DueMs-p.Now.UnixMilli(), p.config.RetryInitial.Milliseconds())
}
