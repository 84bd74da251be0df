package capabilities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/topics"
)

// The gate is open one millisecond before its deadline. That the deadlines of this time have fired is seen from another gate.
func TestGateKeepsItsDeadlineAcrossARestart(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		f := newGateRig(t, guarantee, 1)
		start := time.Now().Truncate(time.Millisecond)
		now := clock.NewFake(start)
		f.run(gate.GrantsGraph, "grants")
		g := f.run(gate.Graph, "gates", processors.WithClock(now))
		f.watch()
		f.ask("s1", "g1", start.Add(time.Minute))
		f.ask("s1", "earlier", start.Add(time.Minute-time.Millisecond))
		open := func(n int) func() bool {
			return func() bool {
				views, err := gate.Inspect(g, "s1")
				return err == nil && len(views) == n
			}
		}
		require.Eventually(t, open(2), waitLimit, time.Millisecond)
		g.crash()
		g = f.run(gate.Graph, "gates", processors.WithClock(now))
		require.Eventually(t, open(2), waitLimit, time.Millisecond, "pending gates are listed after the restart")

		now.Set(start.Add(time.Minute - time.Millisecond))
		require.Eventually(t, func() bool { return f.ended() == 1 }, waitLimit, 10*time.Millisecond)
		require.Empty(t, f.of("g1"), "it is open at 59,999 ms")
		require.Eventually(t, open(1), waitLimit, time.Millisecond)

		now.Set(start.Add(time.Minute))
		require.Eventually(t, func() bool {
			now.Advance(tick) // a processor that has joined its group again ticks this much later
			return f.ended() == 2
		}, waitLimit, 10*time.Millisecond)
		require.Equal(t, topics.GateTimedOut, f.of("g1")[0].Status)

		g.crash()
		f.run(gate.Graph, "gates", processors.WithClock(now))
		f.decide("s1", "g1", "late", topics.VerdictApprove)
		f.ask("s1", "g2", start.Add(time.Hour)) // is read after the repeats
		f.decide("s1", "g2", "d2", topics.VerdictApprove)
		require.Eventually(t, func() bool { return f.ended() == 3 }, waitLimit, 10*time.Millisecond)
		for _, o := range f.of("g1") {
			require.Equal(t, topics.GateTimedOut, o.Status)
		}
		if guarantee == processors.ExactlyOnce {
			require.Len(t, f.of("g1"), 1)
		}
	})
}

// Requests and decisions that were written while no processor ran are applied in any order of their topics.
func TestDecisionsAreAppliedAfterAnOutage(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		f := newGateRig(t, guarantee, 4)
		f.run(gate.GrantsGraph, "grants")
		g := f.run(gate.Graph, "gates")
		f.watch()
		expires := time.Now().Add(time.Hour)
		f.ask("s0", "before", expires)
		f.decide("s1", "early", "d1", topics.VerdictApprove)
		require.Eventually(t, func() bool {
			open, err := gate.Inspect(g, "s0")
			row, err1 := g.Get("s1")
			return err == nil && err1 == nil && len(open) == 1 && row != nil
		}, waitLimit, time.Millisecond)
		g.crash()
		f.decide("s0", "before", "d0", topics.VerdictDeny)
		f.ask("s1", "early", expires)
		f.decide("s2", "both", "d2", topics.VerdictApprove)
		f.decide("s2", "both", "d3", topics.VerdictDeny)
		f.ask("s2", "both", expires)
		f.run(gate.Graph, "gates")
		require.Eventually(t, func() bool { return f.ended() == 3 }, waitLimit, 10*time.Millisecond)
		for id, decision := range map[string]string{"before": "d0", "early": "d1", "both": "d2"} {
			require.Equal(t, decision, f.of(id)[0].DecisionID, id)
		}
	})
}

// The approval was written under a policy that asks, and is read under one that denies.
func TestChangedPolicyOverridesAnApproval(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		f := newGateRig(t, guarantee, 1)
		f.run(gate.GrantsGraph, "grants")
		g := f.run(gate.Graph, "gates")
		f.watch()
		f.ask("s1", "g1", time.Now().Add(time.Hour))
		require.Eventually(t, func() bool {
			open, err := gate.Inspect(g, "s1")
			return err == nil && len(open) == 1
		}, waitLimit, time.Millisecond)
		g.stop()
		f.decide("s1", "g1", "d1", topics.VerdictApprove)
		f.run(builder(gate.Graph).with(approval.Policy{Default: approval.Deny}), "gates")
		require.Eventually(t, func() bool { return f.ended() == 1 }, waitLimit, 10*time.Millisecond)
		o := f.of("g1")[0]
		require.Equal(t, topics.GateDenied, o.Status)
		require.Equal(t, topics.CausePolicy, o.Cause)
		require.Equal(t, "d1", o.DecisionID)
	})
}
