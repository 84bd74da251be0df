package gate

import (
	"slices"
	"time"

	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/topics"
)

// StatusPending is the Status of a View of a gate without an outcome.
const StatusPending topics.GateStatus = "pending"

// View is what a person may see of a gate: the request, and the outcome if there is one. It encodes to JSON with the names
// of the records. Gates returns the views of a row.
type View struct {
	GateID    string `json:"gate_id"`
	SessionID string `json:"session_id"`
	// Status is StatusPending or that of the outcome.
	Status        topics.GateStatus `json:"status"`
	TurnID        string            `json:"turn_id,omitempty"`
	CallID        string            `json:"call_id,omitempty"`
	Kind          topics.GateKind   `json:"kind"`
	Tool          string            `json:"tool"`
	ToolUseID     string            `json:"tool_use_id,omitempty"`
	InteractionID string            `json:"interaction_id,omitempty"`
	// Args, Message, Options and ResponseSchema are kept until the outcome. ArgsSHA256 is kept longer.
	Args           topics.Raw `json:"args,omitzero"`
	ArgsSHA256     string     `json:"args_sha256,omitempty"`
	Message        string     `json:"message,omitempty"`
	Options        topics.Raw `json:"options,omitzero"`
	ResponseSchema topics.Raw `json:"response_schema,omitzero"`
	// Allowed are the verdicts that a decision may have. It is never empty.
	Allowed   []topics.GateVerdict `json:"allowed"`
	Dangerous bool                 `json:"dangerous"`
	Origin    Origin               `json:"origin"`
	// RequestedAt and ExpiresAt are ISO 8601 times.
	RequestedAt string `json:"requested_at"`
	ExpiresAt   string `json:"expires_at"`
	// Outcome is nil while the gate is open.
	Outcome *OutcomeView `json:"outcome,omitempty"`

	proof topics.Proof // of the channel that a question goes to
	code  string       // in that question, if it is not the beginning of GateID
}

// Origin says who opened a gate.
type Origin struct {
	Agent        string `json:"agent,omitempty"`
	ParentGateID string `json:"parent_gate_id,omitempty"`
	Via          string `json:"via,omitempty"`
}

// OutcomeView is how a gate ended. Large edited arguments and answers are not kept in the row and are nil; the record on
// gate-outcomes has them.
type OutcomeView struct {
	Status              topics.GateStatus `json:"status"`
	Cause               topics.GateCause  `json:"cause"`
	DecisionID          string            `json:"decision_id,omitempty"`
	OptionID            string            `json:"option_id,omitempty"`
	EffectiveArgs       topics.Raw        `json:"effective_args,omitzero"`
	EffectiveArgsSHA256 string            `json:"effective_args_sha256,omitempty"`
	Answer              topics.Raw        `json:"answer,omitzero"`
	Reason              string            `json:"reason,omitempty"`
	By                  string            `json:"by,omitempty"`
	WaitedMS            int64             `json:"waited_ms"`
	EndedAt             string            `json:"ended_at"`
}

// Gates returns the gates of a session's row: the open ones in the order in which they were opened, then those that ended
// within the last day, in the order in which they ended (see Config.RememberFor). A gate for which there is no room is
// returned only when it has ended. The row is a value of the table, as Processor.Get and a goka.View with TableCodec return it; nil is
// a session without a row. The views alias the row.
func Gates(session string, row any) ([]View, error) {
	s, err := gaterow.Table.Of(row)
	if err != nil {
		return nil, err
	}
	return gates(session, s), nil
}

func gates(session string, s *gaterow.State) (views []View) {
	for _, g := range s.GetOpen() {
		if g.NoRoom {
			continue
		}
		views = append(views, viewOf(g, session))
	}
	for _, g := range s.GetClosed() {
		views = append(views, viewOf(g, session))
	}
	return views
}

// Successor returns the view of the request that took the place of a gate whose requester could not ask a person. It is for the same
// call, and the processor applies a decision about the gate to it. For any other gate it returns v. views are those of its session.
func Successor(views []View, v *View) *View {
	if v == nil || v.Outcome == nil || v.Outcome.Cause != topics.CauseParentCannotAsk {
		return v
	}
	for i := range views {
		next := &views[i]
		if next.Origin.ParentGateID == v.GateID && next.ArgsSHA256 == v.ArgsSHA256 && next.Tool == v.Tool {
			return next
		}
	}
	return v
}

func viewOf(g *gaterow.Gate, session string) View {
	v := View{
		GateID: g.Id, SessionID: session, Status: StatusPending, TurnID: g.TurnId, CallID: g.CallId,
		Kind: topics.GateKind(g.Kind), Tool: g.Tool, ToolUseID: g.ToolUseId, InteractionID: g.InteractionId,
		Args: rawOf(g.Args), ArgsSHA256: g.ArgsSha256, Message: g.Message, Options: rawOf(g.Options),
		ResponseSchema: rawOf(g.ResponseSchema), Allowed: verdicts(g), Dangerous: g.Dangerous,
		Origin:      Origin{Agent: g.Agent, ParentGateID: g.ParentGateId, Via: g.Via},
		RequestedAt: iso(g.OpenedMs), ExpiresAt: iso(g.ExpiresMs),
	}
	if o := g.Outcome; o != nil {
		v.Status = topics.GateStatus(o.Status)
		v.Outcome = &OutcomeView{
			Status: v.Status, Cause: topics.GateCause(o.Cause), DecisionID: o.DecisionId, OptionID: o.OptionId,
			EffectiveArgs: rawOf(o.EffectiveArgs), EffectiveArgsSHA256: o.EffectiveArgsSha256, Answer: rawOf(o.Answer),
			Reason: o.Reason, By: o.By, WaitedMS: o.WaitedMs, EndedAt: iso(o.AtMs),
		}
	}
	return v
}

// verdicts returns the verdicts that a decision about the gate may have.
func verdicts(g *gaterow.Gate) []topics.GateVerdict {
	switch {
	case len(g.Allowed) > 0:
		verdicts := make([]topics.GateVerdict, len(g.Allowed))
		for i, v := range g.Allowed {
			verdicts[i] = topics.GateVerdict(v)
		}
		return verdicts
	case topics.GateKind(g.Kind) == topics.GateInput:
		return []topics.GateVerdict{topics.VerdictAnswer, topics.VerdictDeny}
	default:
		return []topics.GateVerdict{topics.VerdictApprove, topics.VerdictDeny}
	}
}

func (v View) allows(verdict topics.GateVerdict) bool { return slices.Contains(v.Allowed, verdict) }

// rawOf returns a value of a row: nil for an empty one.
func rawOf(value []byte) topics.Raw {
	if len(value) == 0 {
		return nil
	}
	return value
}

func iso(ms int64) string { return topics.Timestamp(time.UnixMilli(ms)) }
