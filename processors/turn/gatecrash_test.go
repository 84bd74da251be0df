package turn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// After a crash the outcome can be read before the response that asks for the call, and before the message of the turn.
func TestOutcomeThatIsReadBeforeItsCallIsHeld(t *testing.T) {
	for _, c := range []struct {
		name         string
		messageFirst bool
		status       topics.GateStatus
	}{
		{"the step is open, approved", true, topics.GateApproved},
		{"the step is open, denied", true, topics.GateDenied},
		{"the turn is not open, approved", false, topics.GateApproved},
		{"the turn is not open, timed out", false, topics.GateTimedOut},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlay(t, withPolicy(paying()))
			var g gateRequested
			var ask, respond, decided event
			past := func() event { return p.past[len(p.past)-1] }
			run := func() {
				asked := p.ask("pay")
				ask = past()
				g = the[gateRequested](t, p.respond(asked, callingFor(wanted{"t1", "pay", payment})))
				respond = past()
				p.send("gate-outcomes", gateEnd(g, c.status))
				decided = past()
			}
			p.lost(run)
			if c.messageFirst {
				p.repeat(ask)
			}
			require.Empty(t, p.repeat(decided))
			require.Equal(t, uint32(rowGates), p.stored().Version)
			require.Empty(t, p.repeat(decided), "a redelivery")
			if !c.messageFirst {
				p.repeat(ask)
			}
			es := p.repeat(respond)
			require.Equal(t, g, the[gateRequested](t, es), "the request is repeated")
			if c.status == topics.GateApproved {
				require.Equal(t, g.CallID, es.ids()[1])
				require.Len(t, emitted[called](es), 1)
				require.Empty(t, p.state().Turn.Held)
			} else {
				require.Empty(t, emitted[called](es))
				require.NotEmpty(t, emitted[completed](es))
			}
			require.Empty(t, es.letters())
		})
	}
}

// The worker answers the call that was handed out before the crash. It may drop the repeat, so its answer must not be lost.
func TestResultOfACallWhoseApprovalWasLostIsHeld(t *testing.T) {
	for name, named := range map[string]bool{"names its call": true, "names no call": false} {
		t.Run(name, func(t *testing.T) {
			p, g := waitForApproval(t)
			var decided event
			p.lost(func() {
				require.Len(t, emitted[called](p.send("gate-outcomes", gateEnd(g, topics.GateApproved))), 1)
				decided = p.past[len(p.past)-1]
			})
			var opts []recordOption
			if named {
				opts = append(opts, header(topics.HeaderID, g.CallID+"/result"))
			}
			require.Empty(t, p.send("tool-use-result", `{"tool_use_id":"t1","name":"pay","result":{"said":"paid"}}`, opts...))
			require.False(t, ended(p.state().Turn.Calls[0]), "no result counts before the approval")
			es := p.repeat(decided)
			require.Equal(t, g.CallID, es.ids()[0])
			require.Contains(t, string(the[completed](t, es).Results[0].Result), "paid")
		})
	}
}

func TestResultOfACallThatIsRefusedIsDeadLettered(t *testing.T) {
	p, g := waitForApproval(t)
	require.Empty(t, p.resultFrom("pay", "t1", "paid"))
	es := p.send("gate-outcomes", gateEnd(g, topics.GateDenied))
	require.Equal(t, []string{reasonRefused}, es.letters())
	require.Contains(t, string(the[completed](t, es).Results[0].Result), "denied")
	asked := the[enriched](t, es)
	es = p.respond(asked, callingFor(wanted{"t1", "look", `{}`}))
	require.Len(t, emitted[called](es), 1, "the next call has the same tool_use_id")
	require.Empty(t, emitted[completed](es), "and its own result")
}

func TestHeldOutcomeThatNoCallWaitsForIsDeadLettered(t *testing.T) {
	for name, c := range map[string]struct {
		respond string
		reason  string
	}{
		"the model answers instead": {saying("done"), reasonUnclaimed},
		"the call needs none":       {callingFor(wanted{"t1", "look", `{}`}), reasonLateOutcome},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, withPolicy(paying()))
			asked := p.ask("pay")
			call := p.state().Turn.Message.TurnId + "/1/tool-use/0"
			g := gateRequested{GateID: topics.GateID("s1", p.state().Turn.Message.TurnId, call), SessionID: "s1", CallID: call, Tool: "pay", ToolUseID: "t1"}
			require.Empty(t, p.send("gate-outcomes", gateEnd(g, topics.GateApproved)))
			require.Equal(t, []string{c.reason}, p.respond(asked, c.respond).letters())
		})
	}
}

// Repeats of the response do not ask again, and do not move the deadline that the row has.
func TestRepeatedResponseKeepsTheGate(t *testing.T) {
	p, g := waitForApproval(t)
	p.now = p.now.Add(time.Minute)
	require.Empty(t, p.repeat(p.past[len(p.past)-1]))
	require.Equal(t, g.GateID, p.state().Turn.Calls[0].Gate.GateId)
}
