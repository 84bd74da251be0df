package peerhttp

import (
	"net/http"
	"slices"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/peer"
)

// card answers with the description of this instance, which is public.
func (h *Handler) card(r *request, _ string) answer {
	s := r.settings
	c := peerwire.Card{
		InstanceID: s.InstanceID, InstanceName: s.InstanceName, AppVersion: h.config.AppVersion,
		DefaultAgent: h.agents.Default, Delegate: s.Enabled, Idempotent: true, Async: true, Cancel: true,
	}
	for _, id := range append([]string{h.agents.Default}, h.agents.IDs...) {
		if id != "" && delegable(s, id) && !slices.ContainsFunc(c.Agents, func(a peerwire.Agent) bool { return a.ID == id }) {
			c.Agents = append(c.Agents, peerwire.Agent{ID: id, Name: h.config.AgentNames[id]})
		}
	}
	return answer{status: http.StatusOK, body: c.Body()}
}

// delegable reports whether a peer may delegate to an agent.
func delegable(s *peer.Settings, agent string) bool {
	return s.Enabled && slices.ContainsFunc(s.Inbound, func(in peer.Inbound) bool { return in.MayUse(agent) })
}
