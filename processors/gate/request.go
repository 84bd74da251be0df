package gate

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// apply opens the gate of a request, or ends it at once, or withdraws it.
func (e requested) apply(t *transition) {
	r := e.Request
	switch {
	case e.Tombstone():
		t.deadLetter(reasonTombstone)
	case r.SessionID != t.key:
		t.deadLetter(reasonSession)
	case len(r.GateID) > maxID || len(r.Withdrawn) > maxID:
		t.deadLetter(reasonLongID)
	case r.Withdrawn != "":
		t.withdraw(e.Record, r.GateID, r.Withdrawn)
	default:
		t.request(t.gateOf(e), r)
	}
}

// gateOf returns the gate of a request, with the deadline that the request sets.
func (t *transition) gateOf(e requested) *gaterow.Gate {
	r := e.Request
	g := &gaterow.Gate{
		Id: r.GateID, TurnId: r.TurnID, CallId: r.CallID, Kind: string(r.Kind), Tool: r.Tool, ToolUseId: r.ToolUseID,
		InteractionId: r.InteractionID, Args: r.Args, ArgsSha256: r.ArgsSHA256, Message: r.Message, Options: r.Options,
		ResponseSchema: r.ResponseSchema, Dangerous: r.Dangerous, Agent: r.Origin.Agent,
		ParentGateId: r.Origin.ParentGateID, Via: r.Origin.Via, OpenedMs: t.timeOf(e.Record), ExpiresMs: r.ExpiresMS,
	}
	for _, v := range r.Allowed {
		g.Allowed = append(g.Allowed, string(v))
	}
	if g.Agent == "" {
		g.Agent = t.topics.Agent
	}
	if t.config.Channels {
		g.Channel = r.Channel
		origin, _ := topics.DecodeOrigin(r.Channel) // an invalid one ends the gate, see fitsBounds
		g.Proof = string(origin.Proof)
	}
	return g
}

// request decides what becomes of a request: a repeat changes nothing; what the policy or a grant decides ends at once; all
// others wait for a decision.
func (t *transition) request(g *gaterow.Gate, r topics.GateRequest) {
	for _, known := range [][]*gaterow.Gate{t.row.Open, t.row.Closed} {
		if same := findIn(known, g.Id); same != nil {
			if same.ArgsSha256 != g.ArgsSha256 || same.Tool != g.Tool || same.Kind != g.Kind {
				t.deadLetter(reasonConflict)
			}
			return
		}
	}
	if t.ended(g.Id) {
		return
	}
	decision := t.config.Policy.Evaluate(approval.Call{Tool: g.Tool, Args: r.Args})
	g.Dangerous = g.Dangerous || decision.Dangerous
	if g.Message == "" {
		g.Message = decision.Message
	}
	g.ExpiresMs = deadlineOf(g, decision)
	g.DueMs = g.ExpiresMs
	if o := t.endsAtOnce(g, r, decision); o != nil {
		t.endAs(g, o, r.Shadow)
		return
	}
	t.open(g)
}

// deadlineOf returns when a gate expires: as the request says, else as the policy says, and not later than longestWait.
func deadlineOf(g *gaterow.Gate, decision approval.Decision) int64 {
	at := g.ExpiresMs
	if at == 0 {
		at = g.OpenedMs + decision.TTL.Milliseconds()
	}
	return min(at, g.OpenedMs+longestWait.Milliseconds())
}

// endsAtOnce returns the outcome of a request that does not wait for a decision, nil for all others. Only the record and the
// policy matter, so that a repeat after a crash has the same outcome.
func (t *transition) endsAtOnce(g *gaterow.Gate, r topics.GateRequest, decision approval.Decision) *gaterow.Outcome {
	effect := decision.Effect
	if r.Effect != "" {
		effect = approval.Stricter(effect, approval.Effect(r.Effect))
	}
	if effect == approval.Allow && !t.approvable(g) {
		effect = approval.Ask
	}
	switch {
	case !fitsBounds(g):
		return &gaterow.Outcome{
			Status: string(topics.GateDenied), Cause: string(topics.CauseInvalid), Reason: textInvalid, AtMs: g.OpenedMs,
		}
	case !r.Shadow && g.ExpiresMs <= g.OpenedMs:
		return closed(topics.CauseDeadline, g.OpenedMs)
	case effect == approval.Deny:
		if decision.Effect != approval.Deny { // the requester's policy does
			decision.Message = r.Message
		}
		return deniedByPolicy(decision, g.OpenedMs)
	case effect == approval.Allow:
		return approved(g, topics.CausePolicy, "", g.OpenedMs)
	case r.Shadow:
		// Grants are not considered: they can change before a repeat.
		return &gaterow.Outcome{
			Status: string(topics.GateCancelled), Cause: string(topics.CausePolicy), Reason: textAsks, AtMs: g.OpenedMs,
		}
	default:
		return nil
	}
}

// approvable reports whether a gate may be approved without a person: it is not dangerous, an approval says all that the
// requester asks for, and the requester has an option that approves once.
func (t *transition) approvable(g *gaterow.Gate) bool {
	v := viewOf(g, t.key)
	return !g.Dangerous && v.allows(topics.VerdictApprove) && (v.Options == nil || v.onceOption() != "")
}

// onceOption returns the ID of the first option that approves once, empty if there is none.
func (v View) onceOption() string {
	for _, o := range v.options() {
		if o.Kind == kindAllowOnce && len(o.ID) <= maxID {
			return o.ID
		}
	}
	return ""
}

// fitsBounds reports whether a request is small enough, a person and the tool read its arguments alike, and decisions can be
// validated with its schema. Texts of a gate that are too long are dropped.
func fitsBounds(g *gaterow.Gate) bool {
	fits := len(g.Args) <= maxValue && len(g.Message) <= maxMessage && len(g.Options) <= maxMessage &&
		len(g.ResponseSchema) <= maxMessage && len(g.Allowed) <= maxAllowed
	for _, text := range []*string{
		&g.TurnId, &g.CallId, &g.Kind, &g.Tool, &g.ToolUseId, &g.InteractionId, &g.ArgsSha256, &g.Agent, &g.ParentGateId, &g.Via,
	} {
		if len(*text) > maxID {
			*text, fits = "", false
		}
	}
	if len(g.Channel) > 0 {
		if _, err := topics.DecodeOrigin(g.Channel); err != nil {
			g.Channel, fits = nil, false
		}
	}
	for _, verdict := range g.Allowed {
		fits = fits && len(verdict) <= maxID
	}
	// Of a repeated member, a screen may show one value and the tool read the other.
	fits = fits && (len(g.Args) == 0 || jsontext.Value(g.Args).IsValid())
	return fits && (len(g.ResponseSchema) == 0 || checkSchema(g.ResponseSchema) == nil)
}

// open stores a gate and applies the records that were held for it. If there is no room for it, it will be denied.
func (t *transition) open(g *gaterow.Gate) {
	t.changed = true
	t.row.Open = append(t.row.Open, g)
	t.applyEarly(g.Id)
	if t.find(g.Id) == nil {
		return
	}
	if g.OpenedMs < t.row.PurgedMs {
		g.Purged = true
		t.askClose(g, topics.CausePurged, "")
	}
	if !t.fits() {
		t.refuse(g)
		if !t.refusable() {
			t.end(g, closed(topics.CauseNoRoom, g.OpenedMs))
		}
		return
	}
	if grant := t.grantFor(g); grant != nil && g.Closing == "" {
		t.askClose(g, topics.CauseGrant, grant.By)
	}
	t.ask(g)
}

// withdraw ends a gate for its requester. A withdrawal before its request is held.
func (t *transition) withdraw(r *machine.Record, id string, cause topics.GateCause) {
	switch g := t.find(id); {
	case g != nil:
		t.askClose(g, cause, "")
	case !t.ended(id):
		t.hold(&gaterow.Held{GateId: id, Withdrawn: string(cause)}, r)
	}
}

// clipped returns a text with at most maxText bytes.
func clipped(s string) string {
	if len(s) > maxText {
		return strings.ToValidUTF8(s[:maxText], "")
	}
	return s
}
