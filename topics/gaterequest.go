package topics

// GateRequest is the value of {agent}-gate-requests: something waits for a person's decision. A record with Withdrawn ends
// the gate without a decision; it needs no other fields than GateID and SessionID.
type GateRequest struct {
	// GateID identifies the gate. The requester derives it, see the function GateID. Treat it as opaque.
	GateID    string `json:"gate_id"`
	SessionID string `json:"session_id"`
	// TurnID and CallID are empty outside a turn. CallID is the turntable.id of the record that the gate holds back.
	TurnID string   `json:"turn_id,omitzero"`
	CallID string   `json:"call_id,omitzero"`
	Kind   GateKind `json:"kind,omitzero"`
	// Tool is the stable name of the tool or action, never a title for display.
	Tool string `json:"tool,omitzero"`
	// ToolUseID is the model's ID of the call. InteractionID is the ID of the agent's interaction request, which answers
	// repeat. Both may be empty and need not be unique.
	ToolUseID     string `json:"tool_use_id,omitzero"`
	InteractionID string `json:"interaction_id,omitzero"`
	// Args are the exact arguments, nil for none, and ArgsSHA256 is their digest, see the function ArgsSHA256.
	Args       Raw    `json:"args,omitzero"`
	ArgsSHA256 string `json:"args_sha256,omitzero"`
	// Message is a text for the person who decides.
	Message string `json:"message,omitzero"`
	// Options are the requester's own choices, an array of objects with optionId, name and kind, or nil.
	Options Raw `json:"options,omitzero" as:"list"`
	// Allowed are the verdicts that a decision may have. Empty means approve and deny, or answer and deny for a GateInput.
	Allowed []GateVerdict `json:"allowed,omitempty"`
	// ResponseSchema is the JSON Schema of an answer or of edited arguments, an object, or nil.
	ResponseSchema Raw `json:"response_schema,omitzero" as:"object"`
	// Dangerous requests are never approved automatically and never granted for later requests.
	Dangerous bool       `json:"dangerous" without:"Withdrawn"`
	Origin    GateOrigin `json:"origin" without:"Withdrawn"`
	// Effect is what the requester's policy decided, "ask" or "deny"; the gate's own policy can then only be stricter. Empty
	// means that the requester has no policy, and that of the gate decides.
	Effect string `json:"effect,omitzero"`
	// Shadow requests are recorded, but the requester does not wait for the outcome.
	Shadow bool `json:"shadow,omitzero"`
	// ExpiresMS is the deadline in milliseconds since the epoch; 0 means that of the gate's policy. On the wire it is
	// expires_at, an ISO 8601 text.
	ExpiresMS int64 `json:"expires_at,omitzero" as:"time"`
	// Channel is the Origin of the message whose turn opened the gate, where a person is asked, or nil. It is not GateOrigin.
	Channel Raw `json:"channel,omitzero" as:"object"`
	// Withdrawn is the cause for which the requester ends the gate; empty for a request.
	Withdrawn GateCause `json:"withdrawn,omitzero"`
}

// GateOrigin says who opened a gate.
type GateOrigin struct {
	Agent string `json:"agent"`
	// ParentGateID is the gate for whose sake this one was opened, or empty.
	ParentGateID string `json:"parent_gate_id,omitzero"`
	// Via is the capability that opened the gate, such as turn or fold.
	Via string `json:"via,omitzero"`
}

var gateRequestWire = tagged(checkGateRequest)

// checkGateRequest rejects a request that identifies no gate, or whose arguments are not those of its digest.
func checkGateRequest(r *GateRequest) error {
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
