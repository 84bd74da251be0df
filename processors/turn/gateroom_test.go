package turn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func padding(n int) string { return fmt.Sprintf(`{"amount":1,"note":%q}`, strings.Repeat("x", n)) }

// narrowRow has few bytes for the row, and records that are large enough.
func narrowRow(r *rules) { r.RowLimit = 200 << 10 }

// The arguments of a call that waits are in the conversation and once more in the row. If there is no room for them, the call
// ends, the largest first, and its gate is never requested.
func TestCallThatTheRowHasNoRoomForIsNotRequested(t *testing.T) {
	p := newPlay(t, withPolicy(paying()), narrowRow)
	es := p.respond(p.ask("pay"), callingFor(
		wanted{"t1", "pay", padding(10 << 10)}, wanted{"t2", "pay", padding(100 << 10)}, wanted{"t3", "look", `{}`}))
	require.Equal(t, "t1", the[gateRequested](t, es).ToolUseID)
	require.Equal(t, "t2", *the[refused](t, es).ToolUseID)
	require.Equal(t, "t3", *the[called](t, es).ToolUseID)
	require.Contains(t, string(p.resultOf(1).Result), `"reason":"too_large"`)
	require.Len(t, emitted[answered](es), 0)
}

func TestRequestThatDoesNotFitIntoARecordEndsItsCall(t *testing.T) {
	p := newPlay(t, withPolicy(paying()), func(r *rules) { r.RowLimit = r.RecordLimit })
	policy := paying()
	policy.Rules[0].Message = strings.Repeat("m", 300<<10)
	p.rules.Approval = &policy
	es := p.respond(p.ask("pay"), callingFor(wanted{"t1", "pay", padding(800 << 10)}))
	require.Empty(t, emitted[gateRequested](es))
	require.Len(t, emitted[refused](es), 1)
}

// A row that is over its limit gives up the calls that wait before it gives up their turn.
func TestWaitingCallIsGivenUpBeforeItsTurn(t *testing.T) {
	p := newPlay(t, withPolicy(paying()))
	es := p.respond(p.ask("pay"), callingFor(
		wanted{"t1", "pay", padding(40 << 10)}, wanted{"t2", "pay", padding(60 << 10)}, wanted{"t3", "pay", `{"amount":1}`}))
	requests := emitted[gateRequested](es)
	require.Len(t, requests, 3)
	p.rules.RowLimit = p.size() - 50<<10 // it was lowered
	p.restart()
	es = p.send("session-control", `{"action":"cancel","request_id":"none"}`)
	require.Equal(t, gateRequested{GateID: requests[1].GateID, SessionID: "s1", Withdrawn: topics.CauseParentEnded}, the[gateRequested](t, es))
	require.Empty(t, emitted[answered](es))
	turn := p.state().Turn
	require.Contains(t, string(resultOfCall(turn, turn.Calls[1]).Result), "no room for a call that waits")
	require.Equal(t, 2, countOpenCalls(turn))
	require.Len(t, emitted[called](p.send("gate-outcomes", gateEnd(requests[0], topics.GateApproved))), 1)
}

// The last waiting call of a step that is given up ends the step.
func TestStepContinuesAfterItsLastCallIsGivenUp(t *testing.T) {
	p := newPlay(t, withPolicy(paying()))
	p.respond(p.ask("pay"), callingFor(wanted{"t1", "pay", padding(60 << 10)}))
	p.rules.RowLimit = p.size() - 30<<10
	p.restart()
	es := p.send("session-control", `{"action":"cancel","request_id":"none"}`)
	require.Contains(t, string(the[completed](t, es).Results[0].Result), "too_large")
	require.Len(t, emitted[enriched](es), 1)
}

// Changed arguments that do not fit end the call, and the conversation keeps the original ones.
func TestEditThatDoesNotFitEndsTheCall(t *testing.T) {
	for name, size := range map[string]int{"into the row": 199 << 10, "into a record": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, withPolicy(paying()), narrowRow)
			g := the[gateRequested](t, p.respond(p.ask("pay"), callingFor(wanted{"t1", "pay", payment})))
			e := gateEnded{&record{Session: "s1", Cause: "x", Topic: agent + "-gate-outcomes", Value: []byte("x")}, topics.GateOutcome{
				GateID: g.GateID, CallID: g.CallID, Tool: g.Tool, Status: topics.GateApproved,
				EffectiveArgs: topics.Raw(padding(size)), EffectiveArgsSHA256: topics.ArgsSHA256(topics.Raw(padding(size))),
			}}
			es := p.apply(e)
			require.Empty(t, emitted[called](es))
			require.Contains(t, string(the[completed](t, es).Results[0].Result), `"reason":"too_large"`)
			require.Contains(t, string(the[enriched](t, es).History), payment)
		})
	}
}

// Hundreds of gates in one response: each is requested, and each outcome counts once.
func TestEveryCallOfAResponseCanWait(t *testing.T) {
	p := newPlay(t, withPolicy(paying()))
	const n = 200
	list := make([]wanted, n)
	for i := range list {
		list[i] = wanted{fmt.Sprint("t", i), "send", fmt.Sprintf(`{"n":%d}`, i)}
	}
	es := p.respond(p.ask("send"), callingFor(list...))
	requests := emitted[gateRequested](es)
	require.Len(t, requests, n)
	ran := 0
	var last effects
	for i, g := range requests {
		status := topics.GateApproved
		if i%2 == 1 {
			status = topics.GateDenied
		}
		send := p.sendUnchecked
		if i%50 < 2 {
			send = p.send
		}
		last = send("gate-outcomes", gateEnd(g, status))
		ran += len(emitted[called](last))
	}
	require.Equal(t, n/2, ran)
	require.Equal(t, n/2, countOpenCalls(p.state().Turn))
}
