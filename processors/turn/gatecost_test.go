package turn

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// spent is what a turn with one call costs.
type spent struct {
	read, written, rows int // records of its topics, and writes of its row
	bytes               int // of rows and parts
}

// spend plays a turn with one call, whose gate approves it if it has one.
func spend(t *testing.T, change ...func(*rules)) (cost spent) {
	p := newPlay(t, change...)
	say := func(topic, value string) effects {
		row := string(p.row)
		es := p.send(topic, value)
		cost.read++
		for _, e := range es {
			if _, ok := e.(emit); ok {
				cost.written++
			}
		}
		if string(p.row) != row {
			cost.rows++
		}
		return es
	}
	asked := the[enriched](t, say("message-input", message("pay")))
	es := say("think-request-response", response(asked, callingFor(wanted{"t1", "look", payment})))
	for _, g := range emitted[gateRequested](es) {
		es = say("gate-outcomes", gateEnd(g, topics.GateApproved))
	}
	require.Len(t, emitted[called](es), 1)
	es = say("tool-use-result", toolResult("t1", "paid"))
	require.Len(t, emitted[answered](say("think-request-response", response(the[enriched](t, es), saying("done")))), 1)
	cost.bytes = p.wrote
	return cost
}

// The request and the outcome of a gate are two records, and the outcome writes the row once more. A policy costs nothing for
// the calls that it allows.
func TestGatedCallCostsTwoRecordsAndOneRow(t *testing.T) {
	plain := spend(t)
	policy := paying()
	allowed := spend(t, withPolicy(policy), func(r *rules) { r.Gates = true })
	require.Equal(t, plain, allowed)
	policy.ReadOnly = nil
	gated := spend(t, withPolicy(policy))
	require.Equal(t, plain.written+1, gated.written, "the request")
	require.Equal(t, plain.read+1, gated.read, "the outcome")
	require.Equal(t, plain.rows+1, gated.rows)
	t.Logf("a turn with one call: %+v; with a gate: %+v", plain, gated)
}

// The options allocate nothing, and a policy that allows a call allocates little. The margin is for pools, which the race
// detector empties at random.
func TestPolicyAllocatesLittleForCallsThatItAllows(t *testing.T) {
	allocations := func(change ...func(*rules)) float64 {
		p := newPlay(t, change...)
		asked := p.ask("pay")
		e, ok := p.event("think-request-response", []byte(response(asked, callingFor(wanted{"t1", "look", `{}`}))))
		require.True(t, ok)
		bind := p.newBinding()
		return testing.AllocsPerRun(50, func() {
			if _, err := bind.decide(p.table(), e, p.now); err != nil {
				t.Fatal(err)
			}
		})
	}
	none := allocations()
	require.InDelta(t, none, allocations(func(r *rules) { r.Gates = true }), 2)
	with := allocations(withPolicy(paying()))
	require.InDelta(t, none, with, 10, "the policy's decisions")
	t.Logf("allocations of a response with one call: %v; with a policy: %v", none, with)
}
