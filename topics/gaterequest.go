package topics

// GateRequest is the value of {agent}-gate-requests: something waits for a person's decision. A record with Withdrawn ends
// the gate without a decision; it needs no other fields than GateID and SessionID.
type GateRequest struct {
	// GateID identifies the gate. The requester derives it, see the function GateID. Treat it as opaque.
	GateID    string
	SessionID string
	// TurnID and CallID are empty outside a turn. CallID is the turntable.id of the record that the gate holds back.
	TurnID string
	CallID string
	Kind   GateKind
	// Tool is the stable name of the tool or action, never a title for display.
	Tool string
	// ToolUseID is the model's ID of the call. InteractionID is the ID of the agent's interaction request, which answers
	// repeat. Both may be empty and need not be unique.
	ToolUseID     string
	InteractionID string
	// Args are the exact arguments, nil for none, and ArgsSHA256 is their digest, see the function ArgsSHA256.
	Args       Raw
	ArgsSHA256 string
	// Message is a text for the person who decides.
	Message string
	// Options are the requester's own choices, an array of objects with optionId, name and kind, or nil.
	Options Raw
	// Allowed are the verdicts that a decision may have. Empty means approve and deny, or answer and deny for a GateInput.
	Allowed []GateVerdict
	// ResponseSchema is the JSON Schema of an answer or of edited arguments, an object, or nil.
	ResponseSchema Raw
	// Dangerous requests are never approved automatically and never granted for later requests.
	Dangerous bool
	Origin    GateOrigin
	// Effect is what the requester's policy decided, "ask" or "deny"; the gate's own policy can then only be stricter. Empty
	// means that the requester has no policy, and that of the gate decides.
	Effect string
	// Shadow requests are recorded, but the requester does not wait for the outcome.
	Shadow bool
	// ExpiresMS is the deadline in milliseconds since the epoch; 0 means that of the gate's policy. On the wire it is
	// expires_at, an ISO 8601 text.
	ExpiresMS int64
	// Channel is the Origin of the message whose turn opened the gate, where a person is asked, or nil. It is not GateOrigin.
	Channel Raw
	// Withdrawn is the cause for which the requester ends the gate; empty for a request.
	Withdrawn GateCause
}

// GateOrigin says who opened a gate.
type GateOrigin struct {
	Agent string
	// ParentGateID is the gate for whose sake this one was opened, or empty.
	ParentGateID string
	// Via is the capability that opened the gate, such as turn or fold.
	Via string
}

var gateRequestWire = wire[GateRequest]{depth: MaxDepth, read: readValidGateRequest, write: writeGateRequest}

// readValidGateRequest rejects a request that identifies no gate, or whose arguments are not those of its digest.
func readValidGateRequest(c *cursor, r *GateRequest) error {
	if err := readGateRequest(c, r); err != nil {
		return err
	}
	switch {
	case r.GateID == "":
		return missing("gate_id")
	case r.SessionID == "":
		return missing("session_id")
	case r.Withdrawn != "":
	case r.Kind == "":
		return missing("kind")
	case r.Tool == "":
		return missing("tool")
	case r.ArgsSHA256 == "":
		r.ArgsSHA256 = ArgsSHA256(r.Args)
	case r.Args != nil && r.ArgsSHA256 != ArgsSHA256(r.Args):
		return wrongType("args_sha256", "not the digest of args")
	}
	return nil
}

func readGateRequest(c *cursor, r *GateRequest) error {
	return c.record(func(name []byte) (err error) {
		switch string(name) {
		case "gate_id":
			r.GateID, err = c.word()
		case "session_id":
			r.SessionID, err = c.word()
		case "turn_id":
			r.TurnID, err = c.word()
		case "call_id":
			r.CallID, err = c.word()
		case "kind":
			r.Kind, err = readWord[GateKind](c)
		case "tool":
			r.Tool, err = c.word()
		case "tool_use_id":
			r.ToolUseID, err = c.word()
		case "interaction_id":
			r.InteractionID, err = c.word()
		case "args":
			r.Args, err = c.value()
		case "args_sha256":
			r.ArgsSHA256, err = c.word()
		case "message":
			r.Message, err = c.word()
		case "options":
			r.Options, err = c.list()
		case "allowed":
			r.Allowed, err = readVerdicts(c)
		case "response_schema":
			r.ResponseSchema, err = c.document()
		case "dangerous":
			r.Dangerous, err = c.boolean()
		case "origin":
			r.Origin, err = readGateOrigin(c)
		case "effect":
			r.Effect, err = c.word()
		case "shadow":
			r.Shadow, err = c.boolean()
		case "expires_at":
			r.ExpiresMS, err = c.instant()
		case "channel":
			r.Channel, err = c.document()
		case "withdrawn":
			r.Withdrawn, err = readWord[GateCause](c)
		default:
			err = c.skip()
		}
		return err
	})
}

// readWord reads a text as one of the named string types.
func readWord[T ~string](c *cursor) (T, error) {
	word, err := c.word()
	return T(word), err
}

func readVerdicts(c *cursor) (verdicts []GateVerdict, err error) {
	_, err = c.array(func() error {
		v, err := readWord[GateVerdict](c)
		verdicts = append(verdicts, v)
		return err
	}, nil)
	return verdicts, err
}

func readGateOrigin(c *cursor) (o GateOrigin, err error) {
	if c.dec.PeekKind() == 'n' {
		return o, c.skip()
	}
	err = c.object(func(name []byte) (err error) {
		switch string(name) {
		case "agent":
			o.Agent, err = c.word()
		case "parent_gate_id":
			o.ParentGateID, err = c.word()
		case "via":
			o.Via, err = c.word()
		default:
			err = c.skip()
		}
		return err
	})
	return o, err
}

func writeGateRequest(w *writer, r GateRequest) {
	w.grow(len(r.Args) + len(r.Channel) + len(r.Options) + len(r.ResponseSchema) + len(r.Message))
	w.open()
	w.word("gate_id", r.GateID)
	w.word("session_id", r.SessionID)
	w.some("turn_id", r.TurnID)
	w.some("call_id", r.CallID)
	w.some("kind", string(r.Kind))
	w.some("tool", r.Tool)
	w.some("tool_use_id", r.ToolUseID)
	w.some("interaction_id", r.InteractionID)
	w.someRaw("args", r.Args)
	w.some("args_sha256", r.ArgsSHA256)
	w.some("message", r.Message)
	w.someRaw("options", r.Options)
	if len(r.Allowed) > 0 {
		writeList(w, "allowed", r.Allowed, func(w *writer, v GateVerdict) {
			w.next()
			w.b = appendText(w.b, string(v))
		})
	}
	w.someRaw("response_schema", r.ResponseSchema)
	if r.Withdrawn == "" {
		w.boolean("dangerous", r.Dangerous)
		writeGateOrigin(w, r.Origin)
	}
	w.some("effect", r.Effect)
	if r.Shadow {
		w.boolean("shadow", true)
	}
	w.someInstant("expires_at", r.ExpiresMS)
	w.someRaw("channel", r.Channel)
	w.some("withdrawn", string(r.Withdrawn))
	w.close()
}

func writeGateOrigin(w *writer, o GateOrigin) {
	w.name("origin")
	w.b = append(w.b, '{')
	w.word("agent", o.Agent)
	w.some("parent_gate_id", o.ParentGateID)
	w.some("via", o.Via)
	w.close()
}
