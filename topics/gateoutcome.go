package topics

// GateOutcome is the value of {agent}-gate-outcomes: how a gate ended. There is one for each gate.
type GateOutcome struct {
	GateID    string `json:"gate_id"`
	SessionID string `json:"session_id"`
	// TurnID to Tool repeat the request, so that a reader need not have it.
	TurnID        string     `json:"turn_id,omitzero"`
	CallID        string     `json:"call_id,omitzero"`
	Kind          GateKind   `json:"kind,omitzero"`
	Tool          string     `json:"tool,omitzero"`
	ToolUseID     string     `json:"tool_use_id,omitzero"`
	InteractionID string     `json:"interaction_id,omitzero"`
	Status        GateStatus `json:"status"`
	Cause         GateCause  `json:"cause"`
	// DecisionID is the decision that ended the gate, empty for other causes than CauseHuman.
	DecisionID string `json:"decision_id,omitzero"`
	OptionID   string `json:"option_id,omitzero"`
	// EffectiveArgs are the arguments to run if the decision replaced them, else nil. EffectiveArgsSHA256 is the digest of
	// the arguments that may run, edited or not; empty unless Status is GateApproved.
	EffectiveArgs       Raw    `json:"effective_args,omitzero"`
	EffectiveArgsSHA256 string `json:"effective_args_sha256,omitzero"`
	// Answer is the value of an answered question.
	Answer Raw `json:"answer,omitzero"`
	// Reason is a text for the model: the person's, or that of the rule. It may be empty.
	Reason string `json:"reason,omitzero"`
	By     string `json:"by,omitzero"`
	// WaitedMS is the time from the request to the outcome, in milliseconds.
	WaitedMS int64 `json:"waited_ms"`
	// Shadow outcomes say what would have happened; the requester did not wait.
	Shadow bool `json:"shadow,omitzero"`
}

var gateOutcomeWire = tagged(checkGateOutcome)

// checkGateOutcome rejects an outcome of an unknown status: it must not pass for an approval.
func checkGateOutcome(o *GateOutcome) error {
	if o.GateID == "" {
		return missing("gate_id")
	}
	switch o.Status {
	case GateApproved, GateDenied, GateTimedOut, GateCancelled:
		return nil
	default:
		return wrongType("status", "unknown")
	}
}
