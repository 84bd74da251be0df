package turn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/topics"
)

// fullOfGates is a session whose row is full most of the time, and whose calls wait for approval.
type fullOfGates struct {
	*full
	gates    []gateRequested   // that were requested, in order
	ended    map[string]bool   // gates that have an outcome, or were withdrawn
	approved map[string]string // arguments by call
	answered map[string]int    // results by step
	wanted   map[string]int    // calls by step
}

// newFullOfGates asks for calls whose arguments say so, so that results need not name another tool.
func newFullOfGates(t tb) *fullOfGates {
	f := &fullOfGates{
		full: newFull(t), ended: map[string]bool{}, approved: map[string]string{}, answered: map[string]int{}, wanted: map[string]int{},
	}
	f.rules.Agent, f.rules.Approval = agent, &approval.Policy{Default: approval.Allow, Rules: []approval.Rule{
		{Tool: "look", Args: map[string]approval.Condition{"/ask": {}}, Effect: approval.Ask, Edit: true},
	}}
	f.judge = f.see
	return f
}

// see checks the promises of gates on the effects of an event.
func (f *fullOfGates) see(es effects) {
	f.tb.Helper()
	for _, e := range es {
		m, ok := e.(emit)
		if !ok {
			continue
		}
		parts := strings.SplitN(m.ID, "/", 3)
		step := parts[0] + "/" + parts[1]
		switch v := m.Value.(type) {
		case gateRequested:
			if v.Withdrawn != "" {
				require.False(f.tb, f.ended[v.GateID], "a gate ends once")
				f.ended[v.GateID] = true
				continue
			}
			f.gates = append(f.gates, v)
			f.wanted[step]++
		case called:
			if _, gated := topics.Lookup(v.Input, "ask"); gated {
				require.Equal(f.tb, f.approved[m.ID], string(v.Input), "nothing runs without its approval")
				require.NotEmpty(f.tb, f.approved[m.ID])
				delete(f.approved, m.ID) // an approval is consumed
			} else {
				f.wanted[step]++
			}
		case refused:
			f.wanted[step]++
		case completed:
			require.Zero(f.tb, f.answered[step])
			f.answered[step] = len(v.Results)
		}
	}
}

func (f *fullOfGates) respondWithGates(t *rapid.T) {
	if f.asked == nil {
		return
	}
	var list []wanted
	for i := range rapid.SampledFrom([]int{1, 2, 3, 12}).Draw(t, "calls") {
		args := `{"n":1}`
		if rapid.IntRange(0, 3).Draw(t, "asks") > 0 {
			args = fmt.Sprintf(`{"ask":1,"note":%q}`, f.size(t))
		}
		list = append(list, wanted{fmt.Sprintf("t%d-%d", f.n, i), "look", args})
	}
	f.n++
	f.handle(f.recordOf("think-request-response", response(*f.asked, callingFor(list...))))
}

// decide writes the outcome of a gate that has none.
func (f *fullOfGates) decide(t *rapid.T) {
	var open []gateRequested
	for _, g := range f.gates {
		if !f.ended[g.GateID] {
			open = append(open, g)
		}
	}
	if len(open) == 0 {
		return
	}
	g := rapid.SampledFrom(open).Draw(t, "gate")
	f.ended[g.GateID] = true
	status := rapid.SampledFrom([]topics.GateStatus{
		topics.GateApproved, topics.GateApproved, topics.GateApproved, topics.GateDenied, topics.GateTimedOut, topics.GateCancelled,
	}).Draw(t, "status")
	change := func(*topics.GateOutcome) {}
	if status == topics.GateApproved {
		f.approved[g.CallID] = string(g.Args)
		if rapid.Bool().Draw(t, "edit") {
			args := fmt.Sprintf(`{"ask":2,"by":%q}`, f.size(t))
			f.approved[g.CallID] = args
			change = editing(args)
		}
	}
	es := f.handle(f.recordOf("gate-outcomes", gateEnd(g, status, change)))
	require.NotContains(t, es.letters(), reasonLateOutcome, "the call waits for it")
}

// A session whose row is full of calls that wait keeps its promises: each gate ends once, by its outcome or by its withdrawal,
// each call has one result, and nothing runs without its approval.
func TestFullRowWithWaitingCallsKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFullOfGates(t)
		if rapid.Bool().Draw(t, "full") {
			f.fill(rapid.IntRange(0, 400).Draw(t, "memories"), rapid.IntRange(0, 600).Draw(t, "left"))
		}
		moves := f.moves()
		moves["respond with gates"], moves["more gates"] = f.respondWithGates, f.respondWithGates
		moves["decide"], moves["decide more"] = f.decide, f.decide
		moves["purge"] = func(*rapid.T) { f.handle(f.recordOf("session-control", `{"action":"purge"}`)) }
		t.Repeat(moves)
		f.finish()
		for _, g := range f.gates {
			require.True(t, f.ended[g.GateID], "the gate of %s is open after its turn", g.CallID)
		}
		require.Equal(t, f.wanted, f.answered, "each call has one result")
	})
}
