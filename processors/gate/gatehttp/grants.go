package gatehttp

import (
	"net/http"
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

// Grant is a standing approval in the answers of the door.
type Grant struct {
	GrantID string `json:"grant_id"`
	// Scope is session or agent.
	Scope     topics.GateScope `json:"scope"`
	SessionID string           `json:"session_id,omitempty"`
	Agent     string           `json:"agent"`
	Tool      string           `json:"tool"`
	// ArgsSHA256 is the digest of the only arguments that are approved; empty for any arguments.
	ArgsSHA256 string `json:"args_sha256,omitempty"`
	// ExpiresAt is an ISO 8601 time; empty for none.
	ExpiresAt string `json:"expires_at,omitempty"`
	By        string `json:"by,omitempty"`
}

// listGrants answers with the standing approvals of a session, or with those of the agent.
func (h *Handler) listGrants(r *request) answer {
	session := r.URL.Query().Get("session_id")
	stored, rejection, ok := h.grants(r, session)
	if !ok {
		return rejection
	}
	now := h.config.Clock.Now().UnixMilli()
	grants := []Grant{}
	for _, g := range stored {
		if g.ExpiresMs != 0 && g.ExpiresMs <= now {
			continue
		}
		shown := Grant{
			GrantID: g.Id, Scope: topics.ScopeAgent, SessionID: session, Agent: g.Agent, Tool: g.Tool, ArgsSHA256: g.ArgsSha256,
			By: g.By,
		}
		if session != "" {
			shown.Scope = topics.ScopeSession
		}
		if g.ExpiresMs != 0 {
			shown.ExpiresAt = isoOf(g.ExpiresMs)
		}
		grants = append(grants, shown)
	}
	return entrance.OK(map[string][]Grant{"grants": grants})
}

// grants returns the standing approvals of a session, or of the agent if session is empty.
func (h *Handler) grants(r *request, session string) (stored []*gaterow.Grant, rejection answer, ok bool) {
	if session != "" {
		if refusal := r.Session(session); refusal != nil {
			return nil, refusal.Answer(), false
		}
		if err := h.index.rows.CatchUp(r.Context()); err != nil {
			return nil, h.unreadable(err), false
		}
		row, err := h.index.row(r.Context(), r.Key(), session)
		switch {
		case err != nil:
			return nil, h.unreadable(err), false
		case row == nil:
			return nil, answer{}, true
		}
		return row.grants, answer{}, true
	}
	if !governs(r) {
		return nil, forbid(r, "Forbidden: the approvals of the agent need the right to control all sessions"), false
	}
	if err := h.index.standing.CatchUp(r.Context()); err != nil {
		return nil, h.unreadable(err), false
	}
	return h.index.standingGrants(), answer{}, true
}

// revoke ends a standing approval. It answers when the brokers have the record.
func (h *Handler) revoke(r *request) answer {
	id := r.Parts[0]
	session := r.URL.Query().Get("session_id")
	stored, rejection, ok := h.grants(r, session)
	if !ok {
		return rejection
	}
	i := slices.IndexFunc(stored, func(g *gaterow.Grant) bool { return g.Id == id })
	if i < 0 {
		return entrance.Failed(http.StatusNotFound, "Unknown grant")
	}
	by, agent := r.Caller.Name(), stored[i].Agent
	cause := derived("grant revocation", h.topics.Agent, session, id, by)
	out, err := processors.OutboundOf(h.topics.GateGrants, agent, topics.GateGrant{
		Action: topics.ActionRevoke, GrantID: id, Agent: agent, By: by,
	}, cause)
	if session != "" {
		out, err = processors.OutboundOf(h.topics.GateDecisions, session, topics.GateDecision{
			GateID: id, SessionID: session, DecisionID: cause, Verdict: topics.VerdictRevoke, By: by, Via: via,
		}, cause)
	}
	if err != nil {
		return entrance.Internal()
	}
	if refusal := r.Publish(h.to, out); refusal != nil {
		return refusal.Answer()
	}
	r.Record(auth.AuditRevoke, session, id, http.StatusAccepted)
	return answer{Status: http.StatusAccepted, Body: entrance.Object("status", "accepted", "grant_id", id)}
}
