package gate

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// apply applies a decision to its gate. A decision about a gate that has ended changes nothing.
func (e decided) apply(t *transition) {
	d := e.Decision
	switch {
	case e.Tombstone():
		t.deadLetter(reasonTombstone)
	case d.SessionID != t.key:
		t.deadLetter(reasonSession)
	case len(d.GateID) > maxID:
		t.deadLetter(reasonLongID)
	case d.Channel != nil:
		t.decideOnChannel(e.Record, d)
	case d.Verdict == topics.VerdictRevoke:
		t.revoke(d.GateID)
	default:
		t.decide(e.Record, d)
	}
}

func (t *transition) decide(r *machine.Record, d topics.GateDecision) {
	g := t.find(d.GateID)
	next := t.successor(d)
	switch {
	case g == nil && next != nil:
		d.GateID = next.Id
		t.decide(r, d)
	case g == nil && t.ended(d.GateID):
		t.answerLate(r, d)
	case g == nil:
		t.answerEarly(r, d)
		t.hold(&gaterow.Held{
			GateId: d.GateID, Value: r.Value, Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, OnChannel: d.Channel != nil,
		}, r)
	case d.Channel != nil && refusal(g, d) != "":
		t.answer(r, d, refusal(g, d))
	case d.Verdict == topics.VerdictClose && d.Cause == topics.CauseGrant:
		t.approveByGrant(g, d.By, t.timeOf(r))
	case d.Verdict == topics.VerdictClose:
		t.end(g, closed(d.Cause, t.timeOf(r)))
	case t.timeOf(r) >= g.ExpiresMs:
		t.end(g, closed(topics.CauseDeadline, t.timeOf(r)))
	case g.NoRoom:
		t.refuseDecision(r, d, reasonNoRoom) // its close ends it
	default:
		t.decideOpen(r, g, d)
	}
}

// successor returns the open request that took the place of a gate whose requester could not ask a person; nil if there is none. It
// is for the same call, so a person who has seen the gate and decides a moment later decides about it.
func (t *transition) successor(d topics.GateDecision) *gaterow.Gate {
	ended := findIn(t.row.Closed, d.GateID)
	if d.Verdict == topics.VerdictClose || d.Channel != nil || ended.GetOutcome().GetCause() != string(topics.CauseParentCannotAsk) {
		return nil
	}
	for _, g := range t.row.Open {
		if g.ParentGateId == d.GateID && g.ArgsSha256 == ended.ArgsSha256 && g.Tool == ended.Tool {
			return g
		}
	}
	return nil
}

// closed returns the outcome of a gate that ends without a decision.
func closed(cause topics.GateCause, at int64) *gaterow.Outcome {
	o := &gaterow.Outcome{Status: string(topics.GateCancelled), Cause: string(cause), AtMs: at}
	switch cause {
	case topics.CauseDeadline:
		o.Status = string(topics.GateTimedOut)
	case topics.CauseNoRoom:
		o.Status, o.Reason = string(topics.GateDenied), textTooMany
	}
	return o
}

// decideOpen applies a person's decision to an open gate. A decision that the gate does not accept is dead-lettered, or
// answered on its channel, and the gate stays open. A policy that denies the arguments that would run overrides an approval.
func (t *transition) decideOpen(r *machine.Record, g *gaterow.Gate, d topics.GateDecision) {
	v, at := viewOf(g, t.key), t.timeOf(r)
	if err := v.Check(d); err != nil { // compares args_sha256, see check.go
		t.refuseDecision(r, d, err.Error())
		return
	}
	o := &gaterow.Outcome{
		Status: string(topics.GateDenied), Cause: string(topics.CauseHuman), DecisionId: d.DecisionID, OptionId: d.OptionID,
		Reason: d.Reason, By: d.By, AtMs: at,
	}
	if d.Verdict == topics.VerdictDeny {
		t.end(g, o)
		return
	}
	if len(d.EditedArgs)+len(d.Answer) > t.config.RecordLimit-rowMargin {
		t.refuseDecision(r, d, reasonTooLarge)
		return
	}
	args, digest := v.Args, g.ArgsSha256
	if d.EditedArgs != nil {
		args, digest = d.EditedArgs, topics.ArgsSHA256(d.EditedArgs)
	}
	decision := t.config.Policy.Evaluate(approval.Call{Tool: g.Tool, Args: args})
	if decision.Effect == approval.Deny {
		o = deniedByPolicy(decision, at)
		o.DecisionId, o.By = d.DecisionID, d.By
		t.end(g, o)
		return
	}
	o.Status, o.EffectiveArgs, o.EffectiveArgsSha256, o.Answer = string(topics.GateApproved), d.EditedArgs, digest, d.Answer
	if o.OptionId == "" {
		o.OptionId = v.onceOption()
	}
	if !decision.Dangerous {
		t.grant(g, d, at)
	}
	t.end(g, o)
}

// approveByGrant ends a gate for which a grant was found when its request arrived. A policy that denies overrides the grant;
// if a grant no longer suffices, a person is asked. A record that was written at the deadline or later changes nothing: the
// deadline's record follows.
func (t *transition) approveByGrant(g *gaterow.Gate, by string, at int64) {
	v := viewOf(g, t.key)
	decision := t.config.Policy.Evaluate(approval.Call{Tool: g.Tool, Args: v.Args})
	inTime := at < g.ExpiresMs && !g.NoRoom
	switch {
	case inTime && decision.Effect == approval.Deny:
		t.end(g, deniedByPolicy(decision, at))
	case inTime && t.approvable(g) && !decision.Dangerous:
		t.end(g, approved(g, topics.CauseGrant, by, at))
	case g.Closing == string(topics.CauseGrant):
		g.Closing, g.ClosingBy, g.DueMs = "", "", g.ExpiresMs
		t.changed = true
		t.ask(g)
	}
}

// approved returns the outcome of a gate that is approved without a person.
func approved(g *gaterow.Gate, cause topics.GateCause, by string, at int64) *gaterow.Outcome {
	return &gaterow.Outcome{
		Status: string(topics.GateApproved), Cause: string(cause), EffectiveArgsSha256: g.ArgsSha256,
		OptionId: viewOf(g, "").onceOption(), By: by, AtMs: at,
	}
}

func deniedByPolicy(decision approval.Decision, at int64) *gaterow.Outcome {
	return &gaterow.Outcome{
		Status: string(topics.GateDenied), Cause: string(topics.CausePolicy), Reason: clipped(decision.Message), AtMs: at,
	}
}

// end emits the outcome of a gate and moves the gate to the ended ones.
func (t *transition) end(g *gaterow.Gate, o *gaterow.Outcome) { t.endAs(g, o, false) }

func (t *transition) endAs(g *gaterow.Gate, o *gaterow.Outcome, shadow bool) {
	t.changed = true
	o.WaitedMs = max(o.AtMs-g.OpenedMs, 0)
	outcome := topics.GateOutcome{
		GateID: g.Id, SessionID: t.key, TurnID: g.TurnId, CallID: g.CallId, Kind: topics.GateKind(g.Kind), Tool: g.Tool,
		ToolUseID: g.ToolUseId, InteractionID: g.InteractionId, Status: topics.GateStatus(o.Status),
		Cause: topics.GateCause(o.Cause), DecisionID: o.DecisionId, OptionID: o.OptionId, EffectiveArgs: rawOf(o.EffectiveArgs),
		EffectiveArgsSHA256: o.EffectiveArgsSha256, Answer: rawOf(o.Answer), Reason: o.Reason, By: o.By, WaitedMS: o.WaitedMs,
		Shadow: shadow,
	}
	machine.Emit(&t.Effects, t.topics.GateOutcomes, t.key, g.Id+"/outcome", outcome)
	t.announce(g, o)
	t.row.Open = slices.DeleteFunc(t.row.Open, func(other *gaterow.Gate) bool { return other == g })
	t.row.Early = slices.DeleteFunc(t.row.Early, func(h *gaterow.Held) bool { return h.GateId == g.Id && h != t.replaying })
	if g.Purged || shadow || outcome.Cause == topics.CauseInvalid {
		t.rememberEnded(g.Id)
		return
	}
	g.Outcome = o
	forgetRequest(g)
	t.row.Closed = append(t.row.Closed, g)
	if len(t.row.Closed) > maxClosed {
		t.forgetOutcome()
	}
}

// forgetRequest drops what is not kept of a gate after its outcome.
func forgetRequest(g *gaterow.Gate) {
	g.Args, g.Message, g.Options, g.ResponseSchema, g.DueMs, g.Closing = nil, "", nil, nil, 0, ""
	g.Channel, g.Proof = nil, ""
	if len(g.Outcome.EffectiveArgs) > maxKept {
		g.Outcome.EffectiveArgs = nil
	}
	if len(g.Outcome.Answer) > maxKept {
		g.Outcome.Answer = nil
	}
}
