// Package admission decides whether a task of a peer is accepted: which checks its request must pass, and in which order.
package admission

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/peer"
)

// Admit makes the checks of a request that come before its body is read, in the order in which a peer may rely on them:
// the configuration is enabled, the request has a bearer token, the token is accepted, and there is room for another task.
// authorization are the values of the header Authorization. acquire takes a place, if there is one, and reports whether it
// did; it is called last, once. The caller gives the place back when the request has been answered. The refusal is nil if the
// request is admitted.
func Admit(s *peer.Settings, authorization []string, acquire func(peer.Inbound) bool) (peer.Inbound, *peerwire.Refusal) {
	if !s.Enabled {
		return peer.Inbound{}, peerwire.Disabled()
	}
	token, ok := peerwire.Bearer(authorization)
	if !ok {
		return peer.Inbound{}, peerwire.MissingToken()
	}
	in, ok := s.Accept(token)
	if !ok {
		return peer.Inbound{}, peerwire.UnknownToken()
	}
	if !acquire(in) {
		return in, peerwire.ConcurrencyLimit()
	}
	return in, nil
}

// Agents are the agents that tasks of peers may name.
type Agents struct {
	// Default is the agent of a task that names none.
	Default string
	IDs     []string
}

// Check makes the checks of a request that come after its body was read (peerwire.ReadRequest): the token may use the agent, the
// agent exists, and the task has neither passed this instance nor too many others. It returns the agent that the task is for.
// The refusal is nil if the task is accepted. A token with a list of agents is told only about those.
func Check(s *peer.Settings, in peer.Inbound, req peerwire.Request, agents Agents) (agentID string, refusal *peerwire.Refusal) {
	agentID = req.AgentID
	if agentID == "" {
		agentID = agents.Default
	}
	switch {
	case !in.MayUse(req.AgentID):
		refusal = peerwire.AgentForbidden(in.ID, req.AgentID)
	case agentID == "" || agentID != agents.Default && !slices.Contains(agents.IDs, agentID):
		refusal = peerwire.UnknownAgent(agentID)
	default:
		refusal = req.Path.Check(s.InstanceID, s.MaxHops)
	}
	if refusal != nil {
		return "", refusal
	}
	return agentID, nil
}
