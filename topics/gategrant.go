package topics

// The actions of a GateGrant.
const (
	ActionGrant  = "grant"
	ActionRevoke = "revoke"
)

// GateGrant is the value of {agent}-gate-grants, keyed by agent: a standing approval for a tool of the agent, or its
// revocation.
type GateGrant struct {
	Action  string // ActionGrant or ActionRevoke
	GrantID string
	Agent   string
	// Tool is the exact name of the tool; empty in a revocation.
	Tool string
	// ArgsSHA256 limits the grant to calls with these exact arguments; empty means any arguments.
	ArgsSHA256 string
	// ExpiresMS is the end of the grant in milliseconds since the epoch, 0 for none. On the wire it is expires_at.
	ExpiresMS int64
	By        string
}

var gateGrantWire = wire[GateGrant]{depth: MaxDepth, read: readValidGateGrant, write: writeGateGrant}

// readValidGateGrant rejects a grant that covers no named tool.
func readValidGateGrant(c *cursor, g *GateGrant) error {
	err := c.record(func(name []byte) (err error) {
		switch string(name) {
		case "action":
			g.Action, err = c.word()
		case "grant_id":
			g.GrantID, err = c.word()
		case "agent":
			g.Agent, err = c.word()
		case "tool":
			g.Tool, err = c.word()
		case "args_sha256":
			g.ArgsSHA256, err = c.word()
		case "expires_at":
			g.ExpiresMS, err = c.instant()
		case "by":
			g.By, err = c.word()
		default:
			err = c.skip()
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case g.GrantID == "":
		return missing("grant_id")
	case g.Action != ActionGrant && g.Action != ActionRevoke:
		return wrongType("action", "neither grant nor revoke")
	case g.Action == ActionGrant && g.Tool == "":
		return missing("tool")
	}
	return nil
}

func writeGateGrant(w *writer, g GateGrant) {
	w.open()
	w.word("action", g.Action)
	w.word("grant_id", g.GrantID)
	w.word("agent", g.Agent)
	w.some("tool", g.Tool)
	w.some("args_sha256", g.ArgsSHA256)
	w.someInstant("expires_at", g.ExpiresMS)
	w.word("by", g.By)
	w.close()
}
