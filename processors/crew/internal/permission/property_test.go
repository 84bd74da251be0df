package permission

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

// In whatever order requests, outcomes, cancellations and repeats of them come, a request is answered once at most, and
// exactly once when its gate has ended. A gate is requested once and withdrawn only before its end.
func TestARequestIsAnsweredExactlyOnceInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHarness(t)
		answered, opened, withdrawn := map[string]int{}, map[string]int{}, map[string]int{}
		asked, outcomes := map[string]bool{}, map[string]crewbody.GateEnded{}
		count := func(effects []mailbox.Effect) {
			for _, a := range h.answers(effects) {
				answered[a.RequestID]++
			}
			for _, g := range gates(effects) {
				if g.Withdrawn != "" {
					withdrawn[g.GateID]++
				} else {
					opened[g.GateID]++
				}
			}
		}
		ids := rapid.SampledFrom([]string{"r0", "r1", "r2", "r3"})
		statuses := rapid.SampledFrom([]topics.GateStatus{
			topics.GateApproved, topics.GateDenied, topics.GateTimedOut, topics.GateCancelled,
		})
		chosen := rapid.SampledFrom([]string{"", "o0-allow_always", "o1-allow_once", "o2-reject_once", "unknown"})
		end := func(id string) {
			if opened[gateOf(id)] == 0 { // no gate, no outcome
				return
			}
			if _, known := outcomes[id]; !known { // a gate has one outcome
				outcomes[id] = crewbody.GateEnded{
					GateID: gateOf(id), Status: statuses.Draw(t, "status"), Cause: topics.CauseHuman, OptionID: chosen.Draw(t, "option"),
				}
			}
			count(h.end(outcomes[id]))
		}
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				asked[id] = true
				dangerous := rapid.Bool().Draw(t, "dangerous")
				command := map[bool]string{false: "ls", true: "rm -rf /"}[dangerous]
				effects := h.ask(running(id, command, allOptions))
				if len(effects) > 0 {
					require.Equal(t, !dangerous && h.autopilot, len(h.answers(effects)) > 0, "approved at once")
				}
				count(effects)
			},
			"end":       func(t *rapid.T) { end(ids.Draw(t, "id")) },
			"cancel":    func(*rapid.T) { count(h.cancel(true)) },
			"autopilot": func(*rapid.T) { h.autopilot = !h.autopilot },
			"": func(t *rapid.T) {
				open := map[string]bool{}
				for _, p := range h.permissions().Open() {
					open[p.ID] = true
				}
				for id := range asked {
					require.LessOrEqual(t, opened[gateOf(id)], 1)
					require.Equal(t, 1, answered[id]+map[bool]int{true: 1}[open[gateOf(id)]], "%s is open or answered", id)
				}
			},
		})
		for id := range asked {
			end(id)
			require.Equal(t, 1, answered[id], fmt.Sprint(id, " when all gates have ended"))
			require.LessOrEqual(t, withdrawn[gateOf(id)], 1)
		}
	})
}
