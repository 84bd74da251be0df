package gate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

func TestApprovalNamesWhatMayRun(t *testing.T) {
	p := newHarness(t)
	require.Empty(t, p.Handle(p.request("g1")), "a person is asked")
	require.Len(t, p.Read().Open, 1)
	p.Now = p.Now.Add(1500 * time.Millisecond)
	o := outcome(t, p.Handle(p.decision("g1", "d1", topics.VerdictApprove)))
	require.Equal(t, topics.GateOutcome{
		GateID: "g1", SessionID: "s1", TurnID: "t1", CallID: "t1/0/tool-use/g1", Kind: topics.GateTool, Tool: "pay",
		ToolUseID: "toolu_g1", Status: topics.GateApproved, Cause: topics.CauseHuman, DecisionID: "d1",
		EffectiveArgsSHA256: topics.ArgsSHA256(paying), By: "ines", WaitedMS: 1500,
	}, o)
	v := gates("s1", p.Read())
	require.Len(t, v, 1)
	require.Equal(t, topics.GateApproved, v[0].Status)
	require.Nil(t, v[0].Args, "the arguments of an ended gate are not kept")
}

func TestEditedArgumentsReplaceTheOriginal(t *testing.T) {
	p := newHarness(t)
	p.Handle(p.request("g1", func(r *topics.GateRequest) {
		r.Allowed = []topics.GateVerdict{topics.VerdictApprove, topics.VerdictDeny, topics.VerdictEdit}
		r.ResponseSchema = topics.Raw(`{"type":"object","properties":{"cents":{"maximum":200}}}`)
	}))
	edit := func(args string) func(*topics.GateDecision) {
		return func(d *topics.GateDecision) { d.EditedArgs = topics.Raw(args) }
	}
	require.Contains(t, letter(t, p.Handle(p.approve("g1", edit(`{"cents":201}`)))), "does not match the response schema")
	require.Len(t, p.Read().Open, 1, "a malformed answer leaves the gate open")
	o := outcome(t, p.Handle(p.approve("g1", edit(`{"cents": 100}`))))
	require.Equal(t, `{"cents": 100}`, string(o.EffectiveArgs), "byte by byte")
	require.Equal(t, topics.ArgsSHA256(topics.Raw(`{"cents": 100}`)), o.EffectiveArgsSHA256)
}

func TestDecisionAboutOtherArgumentsLeavesTheGateOpen(t *testing.T) {
	p := newHarness(t)
	p.Handle(p.request("g1"))
	other := func(d *topics.GateDecision) { d.ArgsSHA256 = topics.ArgsSHA256(topics.Raw(`{"cents":9}`)) }
	require.Equal(t, "gate: the decision is about other arguments", letter(t, p.Handle(p.approve("g1", other))))
	require.Equal(t, topics.GateApproved, outcome(t, p.Handle(p.approve("g1"))).Status)
}

func TestFirstOfTwoDecisionsCounts(t *testing.T) {
	for _, first := range []topics.GateVerdict{topics.VerdictApprove, topics.VerdictDeny} {
		p := newHarness(t)
		p.Handle(p.request("g1"))
		one, two := p.decision("g1", "d1", first), p.decision("g1", "d2", topics.VerdictApprove)
		require.Equal(t, "d1", outcome(t, p.Handle(one)).DecisionID)
		require.Empty(t, p.Handle(two))
		require.Empty(t, p.Handle(one), "a repeat")
	}
}

func TestDecisionBeforeItsRequestIsHeld(t *testing.T) {
	p := newHarness(t)
	d := p.decision("g1", "d1", topics.VerdictDeny, func(d *topics.GateDecision) { d.Reason = "too much" })
	require.Empty(t, p.Handle(d))
	require.Empty(t, p.Handle(d), "a repeat is held once")
	require.Len(t, p.Read().Early, 1)
	p.Handle(p.decision("g1", "d2", topics.VerdictApprove))
	o := outcome(t, p.Handle(p.request("g1")))
	require.Equal(t, topics.GateDenied, o.Status)
	require.Equal(t, "d1", o.DecisionID)
	require.Equal(t, "too much", o.Reason)
	require.Empty(t, p.Read().Early)
}

func TestHeldDecisionThatTheGateDoesNotAcceptIsDeadLettered(t *testing.T) {
	p := newHarness(t)
	p.Handle(p.approve("g1", func(d *topics.GateDecision) { d.OptionID = "none" }))
	es := p.Handle(p.request("g1"))
	require.Contains(t, letter(t, es), "option is unknown")
	require.NotNil(t, es[0].Held)
	require.Len(t, p.Read().Open, 1)
}

func TestHeldDecisionWithoutARequestIsDeadLettered(t *testing.T) {
	p := newHarness(t)
	p.Handle(p.approve("g1"))
	require.Empty(t, p.advance(p.config.Hold-time.Millisecond))
	require.Equal(t, reasonNoRequest, letter(t, p.advance(time.Millisecond)))
	require.Empty(t, p.Handle(p.request("g1")), "the gate asks again")
}

func TestGateIsOpenUntilItsDeadline(t *testing.T) {
	for name, change := range map[string]func(*topics.GateRequest){
		"of the policy":  func(*topics.GateRequest) {},
		"of the request": func(r *topics.GateRequest) { r.ExpiresMS = 1_790_000_000_000 + 60_000 },
	} {
		p := newHarness(t, func(c *Config) { c.Policy.TTL = time.Minute })
		p.Handle(p.request("g1", change))
		require.Empty(t, p.advance(59_999*time.Millisecond), name)
		require.Len(t, p.Read().Open, 1)
		o := outcome(t, p.advance(time.Millisecond))
		require.Equal(t, topics.GateTimedOut, o.Status)
		require.Equal(t, topics.CauseDeadline, o.Cause)
		require.EqualValues(t, 60_000, o.WaitedMS)
		require.Empty(t, outcomes(p.advance(48*time.Hour)))
	}
}

func TestDecisionAgainstDeadlineInBothOrders(t *testing.T) {
	ttl := func(c *Config) { c.Policy.TTL = time.Minute }
	expire := func(p *harness) topics.GateDecision {
		p.TB.Helper()
		p.Now = time.UnixMilli(p.Read().DeadlineMs).UTC()
		list := closes(p.Handle(deadlineCame{}))
		require.Len(t, list, 1)
		return topics.GateDecision(list[0])
	}
	t.Run("decision first", func(t *testing.T) {
		p := newHarness(t, ttl)
		p.Handle(p.request("g1"))
		p.Now = p.Now.Add(59 * time.Second)
		decision := p.approve("g1") // is written, and read after the deadline has fired
		closing := expire(p)
		require.Equal(t, topics.GateApproved, outcome(t, p.Handle(decision)).Status)
		require.Empty(t, p.Handle(p.decided(closing)))
	})
	t.Run("deadline first", func(t *testing.T) {
		p := newHarness(t, ttl)
		p.Handle(p.request("g1"))
		p.Now = p.Now.Add(59 * time.Second)
		decision := p.approve("g1")
		require.Equal(t, topics.GateTimedOut, outcome(t, p.Handle(p.decided(expire(p)))).Status)
		require.Empty(t, p.Handle(decision))
	})
	t.Run("decision after the deadline, read before the deadline fired", func(t *testing.T) {
		p := newHarness(t, ttl)
		p.Handle(p.request("g1"))
		p.Now = p.Now.Add(time.Hour) // the group did not run
		o := outcome(t, p.Handle(p.approve("g1")))
		require.Equal(t, topics.GateTimedOut, o.Status)
		require.Empty(t, o.DecisionID)
	})
	t.Run("decision before the deadline, read long after it", func(t *testing.T) {
		p := newHarness(t, ttl)
		p.Handle(p.request("g1"))
		p.Now = p.Now.Add(59 * time.Second)
		decision := p.approve("g1")
		p.Now = p.Now.Add(time.Hour) // the group did not run
		require.Equal(t, topics.GateApproved, outcome(t, p.Handle(decision)).Status)
	})
}

func TestCloseThatIsNotReadIsWrittenAgain(t *testing.T) {
	p := newHarness(t)
	p.Handle(p.request("g1"))
	p.Handle(p.withdrawal("g1", topics.CauseSuperseded))
	for range 3 {
		p.Now = time.UnixMilli(p.Read().DeadlineMs).UTC()
		es := p.Handle(deadlineCame{})
		require.Equal(t, topics.CauseSuperseded, closes(es)[0].Cause)
	}
}

func TestRequestIsWithdrawn(t *testing.T) {
	for _, cause := range []topics.GateCause{
		topics.CauseSuperseded, topics.CausePurged, topics.CauseParentEnded, topics.CauseParentCannotAsk,
	} {
		p := newHarness(t)
		p.Handle(p.request("g1"))
		o := outcome(t, p.settle(p.withdrawal("g1", cause)))
		require.Equal(t, topics.GateCancelled, o.Status)
		require.Equal(t, cause, o.Cause)
		require.Empty(t, p.Handle(p.approve("g1")))

		p = newHarness(t)
		require.Empty(t, p.Handle(p.withdrawal("g2", cause)), "before its request")
		p.advance(time.Hour)
		require.Equal(t, cause, outcome(t, p.settle(p.request("g2"))).Cause)
	}
}

func TestDecisionAboutAClosedGateIsForTheRequestInItsPlace(t *testing.T) {
	closed := func(change ...func(*topics.GateRequest)) *harness {
		p := newHarness(t)
		p.Handle(p.request("g1"))
		p.Handle(p.request("g2", append([]func(*topics.GateRequest){func(r *topics.GateRequest) {
			r.TurnID, r.CallID, r.Origin.ParentGateID = "", "", "g1"
		}}, change...)...))
		p.settle(p.withdrawal("g1", topics.CauseParentCannotAsk))
		return p
	}
	p := closed()
	o := outcome(t, p.Handle(p.approve("g1")))
	require.Equal(t, "g2", o.GateID)
	require.Equal(t, topics.GateApproved, o.Status)
	require.Equal(t, "t1", p.Read().Closed[0].TurnId)
	require.Equal(t, string(topics.GateCancelled), p.Read().Closed[0].Outcome.Status, "the gate itself stays closed")

	for name, p := range map[string]*harness{
		"another call": closed(func(r *topics.GateRequest) { r.Args, r.ArgsSHA256 = topics.Raw(`{"cents":1}`), "" }),
		"another gate": closed(func(r *topics.GateRequest) { r.Origin.ParentGateID = "g0" }),
	} {
		require.Empty(t, p.Handle(p.approve("g1")), name)
	}
	p = closed()
	require.Empty(t, p.settle(p.decision("g1", "close", topics.VerdictClose, func(d *topics.GateDecision) { d.Cause = topics.CauseDeadline })))
	require.Len(t, p.Read().Open, 1, "only a person decides about it")
}

func TestRepeatedAndConflictingRequests(t *testing.T) {
	p := newHarness(t)
	r := p.request("g1")
	p.Handle(r)
	require.Empty(t, p.Handle(r))
	other := p.request("g1", func(r *topics.GateRequest) { r.Args = topics.Raw(`{"cents":1}`); r.ArgsSHA256 = "" })
	require.Equal(t, reasonConflict, letter(t, p.Handle(other)))
	outcome(t, p.Handle(p.approve("g1")))
	require.Empty(t, p.Handle(r), "also after the outcome")
	require.Equal(t, reasonConflict, letter(t, p.Handle(other)))
	p.advance(p.config.RememberFor)
	require.Nil(t, p.Read(), "the row of an idle session is deleted")
}

func TestPurgeCancelsTheGatesOfTheSession(t *testing.T) {
	p := newHarness(t)
	p.Handle(p.request("g0"))
	p.Handle(p.approve("g0", func(d *topics.GateDecision) { d.Scope = topics.ScopeSession }))
	require.Equal(t, topics.CauseGrant, outcome(t, p.settle(p.request("g1"))).Cause)
	p.Handle(p.request("g2", func(r *topics.GateRequest) { r.Tool = "sail" }))
	p.Handle(p.request("g3", func(r *topics.GateRequest) { r.Tool = "sail" }))
	p.Now = p.Now.Add(time.Second)
	require.Empty(t, p.Handle(p.control(topics.ActionCancel)), "the turn's business")
	ended := outcomes(p.settle(p.control(topics.ActionPurge)))
	require.Len(t, ended, 2)
	for _, o := range ended {
		require.Equal(t, topics.GateCancelled, o.Status)
		require.Equal(t, topics.CausePurged, o.Cause)
	}
	require.Empty(t, gates("s1", p.Read()), "nothing can be read of a purged session")
	for _, id := range []string{"g0", "g1", "g2", "g3"} {
		require.Empty(t, p.Handle(p.request(id)), "a repeat of a request is recognized")
	}
	require.Empty(t, p.Read().Open)
	require.Empty(t, p.Handle(p.request("g4")), "the grant is gone")
	require.Len(t, p.Read().Open, 1)
}

func TestRequestFromBeforeAPurgeEndsCancelled(t *testing.T) {
	p := newHarness(t)
	r := p.request("g1")
	p.Now = p.Now.Add(time.Second)
	p.Handle(p.control(topics.ActionPurge))
	require.Equal(t, topics.CausePurged, outcome(t, p.settle(r)).Cause)
	require.Empty(t, p.Handle(p.request("g2")))
	require.Len(t, p.Read().Open, 1, "a later request is not affected")
}

func TestHundredGatesOfASessionHaveTheirOwnDecisions(t *testing.T) {
	p := newHarness(t)
	for i := range 100 {
		p.Handle(p.request(fmt.Sprint("g", i)))
	}
	require.Len(t, p.Read().Open, 100)
	for i := 99; i >= 0; i-- {
		verdict := topics.VerdictApprove
		if i%3 == 0 {
			verdict = topics.VerdictDeny
		}
		o := outcome(t, p.Handle(p.decision(fmt.Sprint("g", i), fmt.Sprint("d", i), verdict)))
		require.Equal(t, fmt.Sprint("g", i), o.GateID)
		require.Equal(t, i%3 != 0, o.Status == topics.GateApproved)
		require.Len(t, p.Read().Open, i)
	}
}

func TestInvalidRecordsAreDeadLettered(t *testing.T) {
	p := newHarness(t)
	long := strings.Repeat("x", maxID+1)
	elsewhere := func(r *topics.GateRequest) { r.SessionID = "s2" }
	require.Equal(t, reasonSession, letter(t, p.Handle(p.request("g1", elsewhere))))
	require.Equal(t, reasonSession, letter(t, p.Handle(p.approve("g1", func(d *topics.GateDecision) { d.SessionID = "s2" }))))
	require.Equal(t, reasonLongID, letter(t, p.Handle(p.request(long))))
	require.Equal(t, reasonLongID, letter(t, p.Handle(p.approve(long))))
	require.Equal(t, reasonTombstone, letter(t, p.Handle(requested{Record: &machine.Record{}})))
	require.Equal(t, reasonTombstone, letter(t, p.Handle(decided{Record: &machine.Record{}})))
	require.Empty(t, p.Handle(controlled{Record: &machine.Record{}}))
	require.Nil(t, p.Read())
}

func TestRequestThatCannotBeDecidedIsDenied(t *testing.T) {
	for name, change := range map[string]func(*topics.GateRequest){
		"schema":          func(r *topics.GateRequest) { r.ResponseSchema = topics.Raw(`{"type":"nosuch"}`) },
		"remote":          func(r *topics.GateRequest) { r.ResponseSchema = topics.Raw(`{"$ref":"http://127.0.0.1:1/x"}`) },
		"long turn":       func(r *topics.GateRequest) { r.TurnID = strings.Repeat("x", 1<<20) },
		"long tool":       func(r *topics.GateRequest) { r.Tool = strings.Repeat("x", maxID+1) },
		"repeated member": func(r *topics.GateRequest) { r.Args = topics.Raw(`{"to":"mallory","to":"alice"}`) },
		"arguments":       func(r *topics.GateRequest) { r.Args = topics.Raw(`"` + strings.Repeat("x", maxValue) + `"`) },
		"message":         func(r *topics.GateRequest) { r.Message = strings.Repeat("x", maxMessage+1) },
	} {
		p := newHarness(t, func(c *Config) { c.Policy.Default = approval.Allow })
		r := p.request("g1", change)
		o := outcome(t, p.Handle(r))
		require.Equal(t, topics.GateDenied, o.Status, name)
		require.Equal(t, topics.CauseInvalid, o.Cause, name)
		require.NotEmpty(t, o.Reason)
		require.LessOrEqual(t, len(o.TurnID), maxID)
		require.Empty(t, p.Handle(r), name)
	}
}

func TestModelIsToldWhyTheRequesterDenies(t *testing.T) {
	deny := func(r *topics.GateRequest) { r.Effect, r.Message = "deny", "never on a Sunday" }
	p := newHarness(t)
	require.Equal(t, "never on a Sunday", outcome(t, p.Handle(p.request("g1", deny))).Reason)
	p = newHarness(t, withRules(approval.Rule{Tool: "pay", Effect: approval.Ask, Message: "May it pay?"}))
	require.Equal(t, "never on a Sunday", outcome(t, p.Handle(p.request("g1", deny))).Reason)
	p = newHarness(t, withRules(approval.Rule{Tool: "pay", Effect: approval.Deny, Message: "never"}))
	require.Equal(t, "never", outcome(t, p.Handle(p.request("g1", deny))).Reason, "the gate's policy denies too")
	p = newHarness(t, withRules(approval.Rule{Tool: "pay", Effect: approval.Ask, Message: "May it pay?"}))
	require.Empty(t, outcome(t, p.Handle(p.request("g1", deny, func(r *topics.GateRequest) { r.Message = "" }))).Reason)
}

func TestTimeOfARecordIsItsTimestamp(t *testing.T) {
	p := newHarness(t)
	for name, c := range map[string]struct{ at, want time.Time }{
		"before now":                    {p.Now.Add(-time.Hour), p.Now.Add(-time.Hour)},
		"a writer whose clock is ahead": {p.Now.Add(time.Minute), p.Now.Add(time.Minute)},
		"a writer whose clock is wrong": {p.Now.Add(time.Hour), p.Now},
		"no timestamp":                  {time.Time{}, p.Now},
	} {
		p := newHarness(t)
		r := p.request("g1")
		r.At = c.at
		p.Handle(r)
		require.Equal(t, c.want.UnixMilli(), p.Read().Open[0].OpenedMs, name)
	}
}
