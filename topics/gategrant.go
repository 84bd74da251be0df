package topics

// The actions of a GateGrant.
const (
	ActionGrant  = "grant"
	ActionRevoke = "revoke"
)

// GateGrant is the value of {agent}-gate-grants, keyed by agent: a standing approval for a tool of the agent, or its
// revocation.
type GateGrant struct {
	Action  string `json:"action"` // ActionGrant or ActionRevoke
	GrantID string `json:"grant_id"`
	Agent   string `json:"agent"`
	// Tool is the exact name of the tool; empty in a revocation.
	Tool string `json:"tool,omitzero"`
	// ArgsSHA256 limits the grant to calls with these exact arguments; empty means any arguments.
	ArgsSHA256 string `json:"args_sha256,omitzero"`
	// ExpiresMS is the end of the grant in milliseconds since the epoch, 0 for none. On the wire it is expires_at.
	ExpiresMS int64  `json:"expires_at,omitzero" as:"time"`
	By        string `json:"by"`
}

var gateGrantWire = tagged(checkGateGrant)

// checkGateGrant rejects a grant that covers no named tool.
func checkGateGrant(g *GateGrant) error {
	switch {
	case g.GrantID == "":
		return missing("grant_id")
	case g.Action != ActionGrant && g.Action != ActionRevoke:
		return wrongType("action", "neither grant nor revoke")
	case g.Action == ActionGrant && g.Tool == "":
		return missing("tool")
	}
	return nil
}
