package topics

// GateDecision is the value of {agent}-gate-decisions: what a person, or a program that acts for one, says about a gate.
type GateDecision struct {
	GateID    string
	SessionID string
	// DecisionID identifies the decision: a repeat with the same ID has no effect.
	DecisionID string
	// Verdict is VerdictApprove, VerdictDeny or VerdictAnswer of a person, or VerdictClose or VerdictRevoke.
	Verdict GateVerdict
	// Cause is why the gate is closed: in a VerdictClose only.
	Cause GateCause
	// OptionID is the chosen one of the request's options, or empty.
	OptionID string
	// Reason is shown to the model, or empty.
	Reason string
	// EditedArgs replace the arguments of an approved call; nil leaves them.
	EditedArgs Raw
	// Answer is the value of a VerdictAnswer.
	Answer Raw
	// Scope is empty for ScopeOnce.
	Scope GateScope
	// ArgsSHA256 is the digest of the arguments that the person saw, or empty.
	ArgsSHA256 string
	// By is who decided, and Via is the door or the capability that wrote the decision.
	By  string
	Via string
	// Channel is the Origin of the message in which a person decided on a channel, nil for other decisions. The gate must have
	// been asked about in the same place. GateID may then be the beginning of the gate's ID, or empty for the only gate that is
	// open there; Pressed says that it is the whole ID.
	Channel Raw
	Pressed bool
	// Approver says that the person may decide about requests of others in the same place.
	Approver bool
}

var gateDecisionWire = wire[GateDecision]{depth: MaxDepth, read: readValidGateDecision, write: writeGateDecision}

// readValidGateDecision rejects a decision that names no gate or has no known verdict or scope. It never approves.
func readValidGateDecision(c *cursor, d *GateDecision) error {
	if err := readGateDecision(c, d); err != nil {
		return err
	}
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

func readGateDecision(c *cursor, d *GateDecision) error {
	return c.record(func(name []byte) (err error) {
		switch string(name) {
		case "gate_id":
			d.GateID, err = c.word()
		case "session_id":
			d.SessionID, err = c.word()
		case "decision_id":
			d.DecisionID, err = c.word()
		case "verdict":
			d.Verdict, err = readWord[GateVerdict](c)
		case "cause":
			d.Cause, err = readWord[GateCause](c)
		case "option_id":
			d.OptionID, err = c.word()
		case "reason":
			d.Reason, err = c.word()
		case "edited_args":
			d.EditedArgs, err = c.value()
		case "answer":
			d.Answer, err = c.value()
		case "scope":
			d.Scope, err = readWord[GateScope](c)
		case "args_sha256":
			d.ArgsSHA256, err = c.word()
		case "by":
			d.By, err = c.word()
		case "via":
			d.Via, err = c.word()
		case "channel":
			d.Channel, err = c.document()
		case "pressed":
			d.Pressed, err = c.boolean()
		case "approver":
			d.Approver, err = c.boolean()
		default:
			err = c.skip()
		}
		return err
	})
}

func writeGateDecision(w *writer, d GateDecision) {
	w.grow(len(d.EditedArgs) + len(d.Answer) + len(d.Reason))
	w.open()
	w.word("gate_id", d.GateID)
	w.word("session_id", d.SessionID)
	w.word("decision_id", d.DecisionID)
	w.word("verdict", string(d.Verdict))
	w.some("cause", string(d.Cause))
	w.some("option_id", d.OptionID)
	w.some("reason", d.Reason)
	w.someRaw("edited_args", d.EditedArgs)
	w.someRaw("answer", d.Answer)
	w.some("scope", string(d.Scope))
	w.some("args_sha256", d.ArgsSHA256)
	w.word("by", d.By)
	w.some("via", d.Via)
	w.someRaw("channel", d.Channel)
	if d.Channel != nil {
		w.boolean("pressed", d.Pressed)
		w.boolean("approver", d.Approver)
	}
	w.close()
}
