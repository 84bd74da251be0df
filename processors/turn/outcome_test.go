package turn

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/topics"
)

func TestModelIsToldWhyACallDidNotRun(t *testing.T) {
	for name, c := range map[string]struct {
		status topics.GateStatus
		change func(*topics.GateOutcome)
		reason string
		text   string
	}{
		"denied":              {topics.GateDenied, cause(topics.CauseHuman, "not this month"), "denied", "the call was refused, because: not this month"},
		"denied silently":     {topics.GateDenied, cause(topics.CauseHuman, " "), "denied", "the call was refused by a person, who gave no reason"},
		"denied by a policy":  {topics.GateDenied, cause(topics.CausePolicy, "no"), "denied", "the call was refused, because the policy does not permit it: no"},
		"denied for room":     {topics.GateDenied, cause(topics.CauseNoRoom, ""), "denied", "the call was refused, because the session has no room for another request for approval"},
		"timed out":           {topics.GateTimedOut, cause(topics.CauseDeadline, ""), "approval_timed_out", "no one answered in time whether the call may run, so it did not run; it was not refused"},
		"cancelled":           {topics.GateCancelled, cause(topics.CauseParentEnded, ""), "cancelled", "the call did not run, because the request for its approval was cancelled"},
		"unknown in the core": {"perhaps", cause(topics.CauseHuman, "x"), "denied", "the call was refused, because: x"},
	} {
		t.Run(name, func(t *testing.T) {
			p, g := waitForApproval(t)
			var es effects
			if name == "unknown in the core" { // no codec lets it pass
				o := topics.GateOutcome{GateID: g.GateID, CallID: g.CallID, Status: c.status, Reason: "x", EffectiveArgsSHA256: g.ArgsSHA256}
				es = p.apply(gateEnded{&record{Session: "s1", Cause: "x", Value: []byte("x")}, o})
			} else {
				es = p.send("gate-outcomes", gateEnd(g, c.status, c.change))
			}
			require.Empty(t, emitted[called](es))
			done := the[completed](t, es)
			require.Equal(t, fmt.Sprintf(`{"error":%q,"reason":%q}`, c.text, c.reason), string(done.Results[0].Result))
			require.Equal(t, "error", *done.Results[0].Status)
			require.Contains(t, string(the[enriched](t, es).LatestInput), c.text)
		})
	}
}

func TestTurnEndsWhenItsCallerCannotAsk(t *testing.T) {
	p := newPlay(t, withPolicy(paying()))
	calls := callingFor(wanted{"t1", "pay", payment}, wanted{"t2", "look", `{}`}, wanted{"t3", "pay", `{"amount":1}`})
	gates := emitted[gateRequested](p.respond(p.ask("pay both"), calls))
	require.Len(t, gates, 2)

	es := p.send("gate-outcomes", gateEnd(gates[0], topics.GateCancelled, cause(topics.CauseParentCannotAsk, "")))
	require.Equal(t, topics.CodeParentCannotAsk, the[answered](t, es).Error.Code)
	require.Empty(t, emitted[enriched](es), "the model is not asked again")
	require.Len(t, the[completed](t, es).Results, 3, "every call has a result")
	require.Contains(t, string(the[completed](t, es).Results[0].Result), "the caller cannot ask a person")
	require.Equal(t, gateRequested{GateID: gates[1].GateID, SessionID: "s1", Withdrawn: topics.CauseParentCannotAsk}, the[gateRequested](t, es))
	require.Nil(t, p.state().Turn)

	es = p.send("gate-outcomes", gateEnd(gates[1], topics.GateApproved))
	require.Empty(t, emitted[called](es), "nothing of the turn runs any more")
	require.Equal(t, []string{reasonLateOutcome}, es.letters())
}

func TestOutcomeThatWasHeldEndsTheTurn(t *testing.T) {
	_, g := waitForApproval(t)
	p := newPlay(t, withPolicy(paying()))
	asked := p.ask("pay the invoice")
	require.Empty(t, p.send("gate-outcomes", gateEnd(g, topics.GateCancelled, cause(topics.CauseParentCannotAsk, ""))), "it is held")
	es := p.respond(asked, callingFor(wanted{"t1", "pay", payment}))
	require.Equal(t, topics.CodeParentCannotAsk, the[answered](t, es).Error.Code)
	require.Empty(t, emitted[called](es))
	require.Nil(t, p.state().Turn)
}

func TestEditedArgumentsRunAndTheConversationShowsThem(t *testing.T) {
	p, g := waitForApproval(t)
	const less = `{"to":"acme","amount":100, "note":"é \"}]"}`
	es := p.send("gate-outcomes", gateEnd(g, topics.GateApproved, editing(less)))
	require.Equal(t, less, string(the[called](t, es).Input))
	es = p.resultFrom("pay", "t1", "paid")
	asked := the[enriched](t, es)
	require.Contains(t, string(asked.History), `{"type":"text","text":"let me"},{"type":"tool_use","id":"t1","name":"pay","input":`+less+`}`)
	require.NotContains(t, string(asked.History), "120.50")
	result := string(the[completed](t, es).Results[0].Result)
	require.Equal(t, `{"said":"paid",`+editedMember+`}`, result)
	require.Contains(t, string(asked.LatestInput), result)

	es = p.respond(asked, saying("done"))
	require.Equal(t, "done", the[answered](t, es).Content)
	require.Contains(t, string(p.state().History), less, "the history has the call as it ran")
}

func TestApprovalThatDoesNotCoverWhatWouldRunIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*topics.GateOutcome)
		policy func(*approval.Policy)
		text   string
	}{
		"another digest":     {func(o *topics.GateOutcome) { o.EffectiveArgsSHA256 = topics.ArgsSHA256(topics.Raw(`{}`)) }, nil, "for another call"},
		"another tool":       {func(o *topics.GateOutcome) { o.Tool = "look" }, nil, "for another call"},
		"no digest":          {func(o *topics.GateOutcome) { o.EffectiveArgsSHA256 = "" }, nil, "for another call"},
		"edited, old digest": {func(o *topics.GateOutcome) { o.EffectiveArgs = topics.Raw(`{"amount":1}`) }, nil, "for another call"},
		"edited to a denied": {editing(`{"amount":5000}`), nil, "the policy does not permit it: over the limit"},
		"edit not permitted": {editing(`{"amount":5}`), func(p *approval.Policy) { p.Rules[0].Edit = false }, "does not permit that its arguments are changed"},
		"policy changed":     {func(*topics.GateOutcome) {}, func(p *approval.Policy) { p.Rules[0].Effect = approval.Deny; p.Rules[0].Message = "stop" }, "the policy does not permit it: stop"},
		"policy broken":      {func(*topics.GateOutcome) {}, func(p *approval.Policy) { p.Rules[0].Effect = "perhaps" }, "the policy does not permit it"},
	} {
		t.Run(name, func(t *testing.T) {
			p, g := waitForApproval(t)
			if c.policy != nil {
				changed := paying()
				c.policy(&changed)
				p.rules.Approval = &changed
			}
			es := p.send("gate-outcomes", gateEnd(g, topics.GateApproved, c.change))
			require.Empty(t, emitted[called](es))
			result := string(the[completed](t, es).Results[0].Result)
			require.Contains(t, result, c.text)
			require.Contains(t, result, `"reason":"denied"`)
			require.Contains(t, string(the[enriched](t, es).History), "120.50", "the conversation is unchanged")
		})
	}
}

func TestPolicyThatBecameMoreLenientKeepsTheApproval(t *testing.T) {
	for name, policy := range map[string]*approval.Policy{"none": nil, "allow": {Default: approval.Allow}, "shadow": {Default: approval.Deny, Shadow: true}} {
		t.Run(name, func(t *testing.T) {
			p, g := waitForApproval(t)
			p.rules.Approval, p.rules.Gates = policy, true
			require.NotEmpty(t, emitted[called](p.send("gate-outcomes", gateEnd(g, topics.GateApproved))))
		})
	}
}
