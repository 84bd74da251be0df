package gate

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// covers reports whether a grant approves a gate at a time.
func covers(a *gaterow.Grant, g *gaterow.Gate, atMS int64) bool {
	return a.Agent == g.Agent && a.Tool == g.Tool && (a.ArgsSha256 == "" || a.ArgsSha256 == g.ArgsSha256) && !expired(a, atMS)
}

func expired(a *gaterow.Grant, atMS int64) bool { return a.ExpiresMs != 0 && a.ExpiresMs <= atMS }

// grantFor returns a grant of the session, or of the agent, that approves a gate; nil if there is none.
func (t *transition) grantFor(g *gaterow.Gate) *gaterow.Grant {
	if !t.approvable(g) {
		return nil
	}
	for _, list := range [][]*gaterow.Grant{t.row.Grants, t.standing(g.Agent).GetGrants()} {
		for _, a := range list {
			if covers(a, g, t.nowMS()) {
				return a
			}
		}
	}
	return nil
}

// grant gives the standing approval that a decision asks for. It covers calls of the tool with any arguments.
func (t *transition) grant(g *gaterow.Gate, d topics.GateDecision, at int64) {
	switch d.Scope {
	case topics.ScopeSession:
		t.row.Grants = append(t.row.Grants, &gaterow.Grant{
			Id: g.Id, Agent: g.Agent, Tool: g.Tool, ExpiresMs: at + t.config.SessionGrant.Milliseconds(), By: d.By,
		})
		if len(t.row.Grants) > maxOwnGrants {
			t.row.Grants = t.row.Grants[1:]
		}
	case topics.ScopeAgent:
		machine.Emit(&t.Effects, t.topics.GateGrants, g.Agent, g.Id+"/grant", topics.GateGrant{
			Action: topics.ActionGrant, GrantID: g.Id, Agent: g.Agent, Tool: g.Tool,
			ExpiresMS: at + t.config.AgentGrant.Milliseconds(), By: d.By,
		})
	}
}

// revoke ends a grant of the session. Its ID is that of the gate whose approval gave it.
func (t *transition) revoke(id string) {
	n := len(t.row.Grants)
	t.row.Grants = slices.DeleteFunc(t.row.Grants, func(a *gaterow.Grant) bool { return a.Id == id })
	t.changed = t.changed || len(t.row.Grants) != n
}
