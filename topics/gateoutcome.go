package topics

// GateOutcome is the value of {agent}-gate-outcomes: how a gate ended. There is one for each gate.
type GateOutcome struct {
	GateID    string
	SessionID string
	// TurnID to Tool repeat the request, so that a reader need not have it.
	TurnID        string
	CallID        string
	Kind          GateKind
	Tool          string
	ToolUseID     string
	InteractionID string
	Status        GateStatus
	Cause         GateCause
	// DecisionID is the decision that ended the gate, empty for other causes than CauseHuman.
	DecisionID string
	OptionID   string
	// EffectiveArgs are the arguments to run if the decision replaced them, else nil. EffectiveArgsSHA256 is the digest of
	// the arguments that may run, edited or not; empty unless Status is GateApproved.
	EffectiveArgs       Raw
	EffectiveArgsSHA256 string
	// Answer is the value of an answered question.
	Answer Raw
	// Reason is a text for the model: the person's, or that of the rule. It may be empty.
	Reason string
	By     string
	// WaitedMS is the time from the request to the outcome, in milliseconds.
	WaitedMS int64
	// Shadow outcomes say what would have happened; the requester did not wait.
	Shadow bool
}

var gateOutcomeWire = wire[GateOutcome]{depth: MaxDepth, read: readValidGateOutcome, write: writeGateOutcome}

// readValidGateOutcome rejects an outcome of an unknown status: it must not pass for an approval.
func readValidGateOutcome(c *cursor, o *GateOutcome) error {
	if err := readGateOutcome(c, o); err != nil {
		return err
	}
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

func readGateOutcome(c *cursor, o *GateOutcome) error {
	return c.record(func(name []byte) (err error) {
		switch string(name) {
		case "gate_id":
			o.GateID, err = c.word()
		case "session_id":
			o.SessionID, err = c.word()
		case "turn_id":
			o.TurnID, err = c.word()
		case "call_id":
			o.CallID, err = c.word()
		case "kind":
			o.Kind, err = readWord[GateKind](c)
		case "tool":
			o.Tool, err = c.word()
		case "tool_use_id":
			o.ToolUseID, err = c.word()
		case "interaction_id":
			o.InteractionID, err = c.word()
		case "status":
			o.Status, err = readWord[GateStatus](c)
		case "cause":
			o.Cause, err = readWord[GateCause](c)
		case "decision_id":
			o.DecisionID, err = c.word()
		case "option_id":
			o.OptionID, err = c.word()
		case "effective_args":
			o.EffectiveArgs, err = c.value()
		case "effective_args_sha256":
			o.EffectiveArgsSHA256, err = c.word()
		case "answer":
			o.Answer, err = c.value()
		case "reason":
			o.Reason, err = c.word()
		case "by":
			o.By, err = c.word()
		case "waited_ms":
			o.WaitedMS, err = c.integer(64)
		case "shadow":
			o.Shadow, err = c.boolean()
		default:
			err = c.skip()
		}
		return err
	})
}

func writeGateOutcome(w *writer, o GateOutcome) {
	w.grow(len(o.EffectiveArgs) + len(o.Answer) + len(o.Reason))
	w.open()
	w.word("gate_id", o.GateID)
	w.word("session_id", o.SessionID)
	w.some("turn_id", o.TurnID)
	w.some("call_id", o.CallID)
	w.some("kind", string(o.Kind))
	w.some("tool", o.Tool)
	w.some("tool_use_id", o.ToolUseID)
	w.some("interaction_id", o.InteractionID)
	w.word("status", string(o.Status))
	w.word("cause", string(o.Cause))
	w.some("decision_id", o.DecisionID)
	w.some("option_id", o.OptionID)
	w.someRaw("effective_args", o.EffectiveArgs)
	w.some("effective_args_sha256", o.EffectiveArgsSHA256)
	w.someRaw("answer", o.Answer)
	w.some("reason", o.Reason)
	w.some("by", o.By)
	w.integer("waited_ms", o.WaitedMS)
	if o.Shadow {
		w.boolean("shadow", true)
	}
	w.close()
}
