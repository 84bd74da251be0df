package topics

// GateDecision is the value of {agent}-gate-decisions: what a person, or a program that acts for one, says about a gate.
type GateDecision struct {
	GateID    string `json:"gate_id"`
	SessionID string `json:"session_id"`
	// DecisionID identifies the decision: a repeat with the same ID has no effect.
	DecisionID string `json:"decision_id"`
	// Verdict is VerdictApprove, VerdictDeny or VerdictAnswer of a person, or VerdictClose or VerdictRevoke.
	Verdict GateVerdict `json:"verdict"`
	// Cause is why the gate is closed: in a VerdictClose only.
	Cause GateCause `json:"cause,omitzero"`
	// OptionID is the chosen one of the request's options, or empty.
	OptionID string `json:"option_id,omitzero"`
	// Reason is shown to the model, or empty.
	Reason string `json:"reason,omitzero"`
	// EditedArgs replace the arguments of an approved call; nil leaves them.
	EditedArgs Raw `json:"edited_args,omitzero"`
	// Answer is the value of a VerdictAnswer.
	Answer Raw `json:"answer,omitzero"`
	// Scope is empty for ScopeOnce.
	Scope GateScope `json:"scope,omitzero"`
	// ArgsSHA256 is the digest of the arguments that the person saw, or empty.
	ArgsSHA256 string `json:"args_sha256,omitzero"`
	// By is who decided, and Via is the door or the capability that wrote the decision.
	By  string `json:"by"`
	Via string `json:"via,omitzero"`
	// Channel is the Origin of the message in which a person decided on a channel, nil for other decisions. The gate must have
	// been asked about in the same place. GateID may then be the beginning of the gate's ID, or empty for the only gate that is
	// open there; Pressed says that it is the whole ID.
	Channel Raw  `json:"channel,omitzero" as:"object"`
	Pressed bool `json:"pressed" with:"Channel"`
	// Approver says that the person may decide about requests of others in the same place.
	Approver bool `json:"approver" with:"Channel"`
}

var gateDecisionWire = tagged(checkGateDecision)

// checkGateDecision rejects a decision that names no gate or has no known verdict or scope. It never approves.
func checkGateDecision(d *GateDecision) error {
	switch {
	case d.GateID == "" && d.Channel == nil:
		return missing("gate_id")
	case d.SessionID == "":
		return missing("session_id")
	case d.DecisionID == "":
		return missing("decision_id")
	}
	switch d.Verdict {
	case VerdictApprove, VerdictDeny, VerdictAnswer, VerdictRevoke:
	case VerdictClose:
		if d.Cause == "" {
			return missing("cause")
		}
	default:
		return wrongType("verdict", "none of approve, deny, answer, close and revoke")
	}
	switch d.Scope {
	case "", ScopeOnce, ScopeSession, ScopeAgent:
	default:
		return wrongType("scope", "none of once, session and agent")
	}
	return nil
}
