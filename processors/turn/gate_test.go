package turn

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/topics"
)

// paying is a policy that asks before money is spent, permits other amounts, and never lets anything be deleted.
func paying() approval.Policy {
	return approval.Policy{
		ReadOnly: []string{"look*"}, TTL: 20 * time.Minute,
		Rules: []approval.Rule{
			{Tool: "pay", Effect: approval.Ask, Edit: true, Message: "This spends money."},
			{Tool: "pay", Effect: approval.Deny, Args: map[string]approval.Condition{"/amount": {AtLeast: new(1000.0)}}, Message: "over the limit"},
			{Tool: "delete", Effect: approval.Deny, Message: "nothing is ever deleted"},
			{Tool: "send", Effect: approval.Ask},
		},
	}
}

func withPolicy(p approval.Policy) func(*rules) {
	return func(r *rules) { r.Agent, r.Approval = agent, &p }
}

// wanted is a call that a model asks for.
type wanted struct{ id, tool, args string }

// callingFor is a response that asks for calls, with their blocks as FlightDeck's workers write them.
func callingFor(list ...wanted) string {
	var items, blocks []string
	for _, w := range list {
		items = append(items, fmt.Sprintf(`{"tool_use_id":%q,"tool_id":%q,"name":%q,"input":%s,"session_id":"s1"}`, w.id, w.tool, w.tool, w.args))
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, w.id, w.tool, w.args))
	}
	return `"last_input_response":[{"role":"assistant","content":[{"type":"text","text":"let me"},` + strings.Join(blocks, ",") +
		`]}],"tool_uses":[` + strings.Join(items, ",") + `],"end_turn":false`
}

// outcome is the outcome of a request as the gate writes it.
func gateEnd(g gateRequested, status topics.GateStatus, change ...func(*topics.GateOutcome)) string {
	o := topics.GateOutcome{
		GateID: g.GateID, SessionID: g.SessionID, TurnID: g.TurnID, CallID: g.CallID, Kind: g.Kind, Tool: g.Tool,
		ToolUseID: g.ToolUseID, Status: status, Cause: topics.CauseHuman,
	}
	if status == topics.GateApproved {
		o.EffectiveArgsSHA256 = g.ArgsSHA256
	}
	for _, f := range change {
		f(&o)
	}
	c, _ := topics.For(agent)
	raw, _ := c.GateOutcomes.Codec().Marshal(o)
	return string(raw)
}

func editing(args string) func(*topics.GateOutcome) {
	return func(o *topics.GateOutcome) {
		o.EffectiveArgs, o.EffectiveArgsSHA256 = topics.Raw(args), topics.ArgsSHA256(topics.Raw(args))
	}
}

func cause(c topics.GateCause, reason string) func(*topics.GateOutcome) {
	return func(o *topics.GateOutcome) { o.Cause, o.Reason = c, reason }
}

// resultFrom is a result of a tool.
func (p *play) resultFrom(tool, id, text string) effects {
	p.tb.Helper()
	return p.send("tool-use-result", strings.Replace(toolResult(id, text), `"name":"look"`, fmt.Sprintf(`"name":%q`, tool), 1))
}

const payment = `{"to": "acme",  "amount":120.50}`

// waitForApproval opens a turn whose only call waits for approval.
func waitForApproval(t tb, change ...func(*rules)) (*play, gateRequested) {
	p := newPlay(t, append([]func(*rules){withPolicy(paying())}, change...)...)
	es := p.respond(p.ask("pay the invoice"), callingFor(wanted{"t1", "pay", payment}))
	require.Empty(t, emitted[called](es))
	return p, the[gateRequested](t, es)
}

func TestCallThatNeedsApprovalIsRequestedAndTheOthersRun(t *testing.T) {
	p := newPlay(t, withPolicy(paying()))
	es := p.respond(p.ask("pay"), callingFor(
		wanted{"t1", "look", `{}`}, wanted{"t2", "pay", payment}, wanted{"t3", "lookup", `{}`}, wanted{"t4", "delete", `{"all":true}`}))
	calls := emitted[called](es)
	require.Len(t, calls, 2)
	require.Equal(t, "t1", *calls[0].ToolUseID)
	require.Equal(t, "t3", *calls[1].ToolUseID)
	requests := emitted[gateRequested](es)
	require.Len(t, requests, 2)
	turn := p.state().Turn.Message.TurnId
	require.Equal(t, gateRequested{
		GateID: topics.GateID("s1", turn, turn+"/1/tool-use/1"), SessionID: "s1", TurnID: turn, CallID: turn + "/1/tool-use/1",
		Kind: topics.GateTool, Tool: "pay", ToolUseID: "t2", Args: topics.Raw(payment), ArgsSHA256: topics.ArgsSHA256(topics.Raw(payment)),
		Message: "This spends money.", Allowed: []topics.GateVerdict{"approve", "deny", "edit"},
		Origin: topics.GateOrigin{Agent: agent, Via: "turn"}, Effect: "ask", ExpiresMS: p.now.Add(20 * time.Minute).UnixMilli(),
	}, requests[0])
	require.Equal(t, "deny", requests[1].Effect, "the gate records the refusal")
	require.Equal(t, []string{
		turn + "/1/tool-use/0", turn + "/1/gate-request/1", turn + "/1/tool-use/2", turn + "/1/gate-request/3",
	}, es.ids())
	require.Equal(t, uint32(rowGates), p.stored().Version, "an older build would hand out nothing")
}

func TestApprovedCallRunsOnItsOwnClock(t *testing.T) {
	p := newPlay(t, withPolicy(paying()))
	es := p.respond(p.ask("pay"), callingFor(wanted{"t1", "look", `{}`}, wanted{"t2", "pay", payment}))
	g := the[gateRequested](t, es)
	require.Empty(t, p.result("t1", "seen"))
	p.wait(15 * time.Minute)
	es = p.send("gate-outcomes", gateEnd(g, topics.GateApproved))
	call := the[called](t, es)
	require.Equal(t, "t2", *call.ToolUseID)
	require.Equal(t, payment, string(call.Input))
	require.Equal(t, int64(2), call.TotalTools)
	require.Equal(t, g.CallID, es.ids()[0])
	require.Equal(t, p.now.Add(5*time.Minute).UnixMilli(), es[0].(emit).DeadlineMS)
	require.Empty(t, p.wait(5*time.Minute-time.Millisecond))
	es = p.wait(time.Millisecond)
	require.Equal(t, `{"error":"async tool did not respond within 300000ms","reason":"timeout"}`,
		string(the[completed](t, es).Results[1].Result))
	require.Less(t, p.stored().Version, uint32(rowGates), "no call of the next step has a gate")
}

func TestUngatedCallsKeepTheClockOfTheirStep(t *testing.T) {
	p := newPlay(t, withPolicy(paying()))
	es := p.respond(p.ask("pay"), callingFor(wanted{"t1", "look", `{}`}, wanted{"t2", "pay", payment}))
	g := the[gateRequested](t, es)
	require.Equal(t, p.now.Add(5*time.Minute).UnixMilli(), p.stored().DeadlineMs)
	require.Empty(t, p.wait(5*time.Minute))
	require.Contains(t, string(p.resultOf(0).Result), "async tool did not respond")
	require.False(t, ended(p.state().Turn.Calls[1]), "its clock has not begun")
	require.Equal(t, p.now.Add(20*time.Minute).UnixMilli(), p.stored().DeadlineMs, "5 minutes after the gate's")
	p.send("gate-outcomes", gateEnd(g, topics.GateApproved))
	es = p.resultFrom("pay", "t2", "paid")
	require.Contains(t, string(the[completed](t, es).Results[1].Result), "paid")
}

func TestGateWithoutAnOutcomeEndsFiveMinutesAfterItsDeadline(t *testing.T) {
	p, g := waitForApproval(t)
	require.Empty(t, p.wait(25*time.Minute-time.Millisecond))
	es := p.wait(time.Millisecond)
	require.Contains(t, string(the[completed](t, es).Results[0].Result), `"reason":"approval_timed_out"`)
	require.Equal(t, gateRequested{GateID: g.GateID, SessionID: "s1", Withdrawn: topics.CauseParentEnded}, the[gateRequested](t, es))
	require.NotContains(t, es.ids(), g.CallID)
	es = p.send("gate-outcomes", gateEnd(g, topics.GateApproved))
	require.Equal(t, []string{reasonLateOutcome}, es.letters())
	require.Len(t, es, 1, "nothing runs without an approval in time")
}

func TestEndOfATurnWithdrawsItsGates(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(p *play) effects
		cause topics.GateCause
	}{
		"cancel": {func(p *play) effects { return p.send("session-control", `{"action":"cancel"}`) }, topics.CauseParentEnded},
		"purge":  {func(p *play) effects { return p.send("session-control", `{"action":"purge"}`) }, topics.CausePurged},
		"defect": {func(p *play) effects {
			return defect(storedRow(p.row), deadlineCame{Session: p.key}, errBroken, p.now, p.rules).Effects
		}, topics.CauseParentEnded},
		"damage": {func(p *play) effects {
			return eraseState(p.stored(), &record{Session: p.key}, p.now, p.rules).Effects
		}, topics.CauseParentEnded},
	} {
		t.Run(name, func(t *testing.T) {
			p, g := waitForApproval(t)
			es := c.end(p)
			require.Equal(t, gateRequested{GateID: g.GateID, SessionID: "s1", Withdrawn: c.cause}, the[gateRequested](t, es))
			require.Empty(t, emitted[called](es))
			require.NotNil(t, the[answered](t, es).Error)
			if name != "defect" && name != "damage" {
				require.Len(t, the[completed](t, es).Results, 1)
				require.Empty(t, p.send("gate-outcomes", gateEnd(g, topics.GateCancelled, cause(c.cause, ""))), "it is expected")
				require.Equal(t, []string{reasonLateOutcome}, p.send("gate-outcomes", gateEnd(g, topics.GateApproved)).letters())
			}
		})
	}
}

func TestLateAndRepeatedOutcomesChangeNothing(t *testing.T) {
	p, g := waitForApproval(t)
	approve := gateEnd(g, topics.GateApproved)
	require.Len(t, emitted[called](p.send("gate-outcomes", approve)), 1)
	require.Empty(t, p.repeat(p.past[len(p.past)-1]), "a redelivery")
	before := p.row
	for _, again := range []string{approve, gateEnd(g, topics.GateDenied), gateEnd(g, topics.GateApproved, editing(`{}`))} {
		es := p.send("gate-outcomes", again)
		require.Equal(t, []string{reasonLateOutcome}, es.letters())
		require.Len(t, es, 1)
		require.Equal(t, before, p.row)
	}
	other := g
	other.GateID = topics.GateID("s1", g.TurnID, g.CallID+"0")
	require.Empty(t, p.send("gate-outcomes", gateEnd(other, topics.GateApproved)), "the gate of another requester")
	require.NotEmpty(t, p.resultFrom("pay", "t1", "x"))
	require.Equal(t, []string{reasonLateOutcome}, p.send("gate-outcomes", gateEnd(g, topics.GateDenied)).letters())
}

func TestDenialIsFinal(t *testing.T) {
	p, g := waitForApproval(t)
	p.send("gate-outcomes", gateEnd(g, topics.GateDenied))
	es := p.send("gate-outcomes", gateEnd(g, topics.GateApproved))
	require.Equal(t, []string{reasonLateOutcome}, es.letters())
	require.Empty(t, emitted[called](es))
}

func TestOutcomeOfAnotherCallIsNotAnApproval(t *testing.T) {
	p := newPlay(t, withPolicy(paying()))
	es := p.respond(p.ask("pay"), callingFor(wanted{"t1", "pay", payment}, wanted{"t2", "pay", payment}))
	requests := emitted[gateRequested](es)
	mixed := requests[0]
	mixed.CallID = requests[1].CallID // the gate of t1 with the name of t2
	require.Empty(t, p.send("gate-outcomes", gateEnd(mixed, topics.GateApproved)))
	require.Equal(t, 2, countOpenCalls(p.state().Turn))
	es = p.send("gate-outcomes", gateEnd(requests[1], topics.GateApproved))
	require.Equal(t, "t2", *the[called](t, es).ToolUseID)
}

func TestShadowPolicyHandsOutAndRecords(t *testing.T) {
	policy := paying()
	policy.Shadow = true
	p := newPlay(t, withPolicy(policy))
	es := p.respond(p.ask("pay"), callingFor(wanted{"t1", "look", `{}`}, wanted{"t2", "pay", payment}, wanted{"t3", "delete", `{}`}))
	require.Len(t, emitted[called](es), 3)
	requests := emitted[gateRequested](es)
	require.Len(t, requests, 2)
	require.True(t, requests[0].Shadow)
	require.Equal(t, "deny", requests[1].Effect)
	require.Less(t, p.stored().Version, uint32(rowGates))
	require.Empty(t, p.send("gate-outcomes", gateEnd(requests[0], topics.GateDenied, func(o *topics.GateOutcome) { o.Shadow = true })))
}

func TestMessageDuringAGateWaitsOrSupersedesIt(t *testing.T) {
	t.Run("waits", func(t *testing.T) {
		p, g := waitForApproval(t)
		require.Empty(t, p.send("message-input", message("hurry")))
		require.Len(t, emitted[called](p.send("gate-outcomes", gateEnd(g, topics.GateApproved))), 1)
	})
	t.Run("supersedes", func(t *testing.T) {
		p, g := waitForApproval(t, func(r *rules) { r.SupersedeGates = true })
		es := p.send("message-input", message("never mind"))
		require.Equal(t, gateRequested{GateID: g.GateID, SessionID: "s1", Withdrawn: topics.CauseSuperseded}, the[gateRequested](t, es))
		require.Contains(t, string(the[completed](t, es).Results[0].Result), `cancelled: a newer message arrived","reason":"cancelled"}`)
		require.Empty(t, p.send("gate-outcomes", gateEnd(g, topics.GateCancelled, cause(topics.CauseSuperseded, ""))))
		es = p.respond(the[enriched](t, es), saying("as you wish"))
		require.Equal(t, "as you wish", the[answered](t, es).Content, "the turn continues")
		require.Contains(t, string(the[enriched](t, es).LatestInput), "never mind", "then the message has its turn")
	})
	t.Run("rejected messages supersede nothing", func(t *testing.T) {
		p, _ := waitForApproval(t, func(r *rules) { r.SupersedeGates, r.QueueLimit, r.Policy = true, 1, Reject })
		require.Empty(t, emitted[gateRequested](p.send("message-input", message("busy?"))))
	})
}

func TestRowsWithoutGatedCallsAreTheSameWithAPolicy(t *testing.T) {
	rows := func(change ...func(*rules)) (list []string) {
		p := newPlay(t, change...)
		asked := p.ask("look")
		list = append(list, string(p.row))
		p.respond(asked, callingFor(wanted{"t1", "look", `{}`}, wanted{"t2", "lookup", payment}))
		list = append(list, string(p.row))
		p.result("t1", "x")
		list = append(list, string(p.row))
		asked = the[enriched](t, p.resultFrom("lookup", "t2", "y"))
		list = append(list, string(p.row))
		p.respond(asked, saying("done"))
		return append(list, string(p.row))
	}
	require.Equal(t, rows(), rows(withPolicy(paying()), func(r *rules) { r.Gates, r.SupersedeGates = true, true }))
}

func TestDescribeNamesTheGatesOfCalls(t *testing.T) {
	p, g := waitForApproval(t)
	text := describe(p.state())
	require.Contains(t, text, `call 0: pay "t1": waits for gate `+g.GateID+" until 2026-")
	require.NotContains(t, text, "acme")
	p.send("gate-outcomes", gateEnd(g, topics.GateApproved))
	require.Contains(t, describe(p.state()), `call 0: pay "t1": approved, open until 2026-`)
}
