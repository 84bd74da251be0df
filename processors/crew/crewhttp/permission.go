package crewhttp

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/processors/internal/seen"
	"github.com/turntable-streams/turntable/topics"
)

var (
	errScope     = errors.New("scope is neither session nor agent")
	errDangerous = errors.New("a dangerous request is allowed once only")
	errDigest    = errors.New("argsSha256 is not the digest of the request")
	errNotShown  = errors.New(seen.Refusal)
	errOption    = errors.New("the request has no such option")
	errGovern    = errors.New("an approval for all agents of the role needs the right to control all crews")
)

// permit is a person's answer to a permission request.
type permit struct {
	Approved    *bool  `json:"approved"`
	RequestID   string `json:"requestId"`
	OptionID    string `json:"optionId"`
	AlwaysAllow bool   `json:"alwaysAllow"`
	Scope       string `json:"scope"` // of AlwaysAllow: session (default), which is the agent, or agent, which is its role
	Reason      string `json:"reason"`
	ArgsSHA256  string `json:"argsSha256"` // of the whole request
}

// wanted is the outcome that the answer asks for.
func (p permit) wanted() string {
	if *p.Approved {
		return string(topics.GateApproved)
	}
	return string(topics.GateDenied)
}

// decision returns the answer as the decision about the gate of a request. read reports whether the caller has read the whole
// request. The error is one of those above.
func (p permit) decision(agent string, asked view.PermissionAsked, read bool, caller auth.Caller, id string) (topics.GateDecision, error) {
	d := topics.GateDecision{
		GateID: asked.ID, SessionID: agent, DecisionID: id, Verdict: topics.VerdictDeny, OptionID: p.OptionID, Reason: p.Reason,
		ArgsSHA256: asked.ArgsSHA256, By: nameOf(caller), Via: via,
	}
	if *p.Approved {
		d.Verdict = topics.VerdictApprove
	}
	switch {
	case p.ArgsSHA256 != "" && asked.Truncated && p.ArgsSHA256 != asked.ArgsSHA256:
		return d, errDigest
	case *p.Approved && asked.Truncated && p.ArgsSHA256 == "" && !read:
		return d, errNotShown
	}
	if p.OptionID != "" && !slices.Contains(optionsOf(asked), p.OptionID) {
		return d, errOption
	}
	if !p.AlwaysAllow || !*p.Approved {
		return d, nil
	}
	switch {
	case asked.Dangerous:
		return d, errDangerous
	case p.Scope == "" || p.Scope == string(topics.ScopeSession):
		d.Scope = topics.ScopeSession
	case p.Scope != string(topics.ScopeAgent):
		return d, errScope
	case !governs(caller):
		return d, errGovern
	default:
		d.Scope = topics.ScopeAgent
	}
	return d, nil
}

// permission answers a permission request of an agent.
func (h *Handler) permission(r *request) answer {
	p, err := read[permit](r.Body)
	switch {
	case err != nil || p.Approved == nil || len(p.Reason) > maxPath || len(p.OptionID) > maxID:
		return badBody(errBody)
	case !usable(p.RequestID):
		return entrance.Failed(http.StatusBadRequest, "requestId is missing: an answer is about one request")
	}
	id := h.inputID(r)
	row, rejection, ok := h.agent(r, r.Parts[0])
	if !ok {
		return rejection
	}
	ended, stop := h.index.await(p.RequestID)
	defer stop()
	asked, open, err := h.index.askedBy(r.Context(), row.view.ID, p.RequestID)
	if err != nil {
		return notReady()
	}
	if !open {
		select {
		case o := <-ended:
			if o.AgentID == r.Parts[0] {
				return p.settled(o, nameOf(r.Caller))
			}
		default:
		}
		return entrance.Failed(http.StatusNotFound, "Unknown permission request")
	}
	d, err := p.decision(row.view.ID, asked, h.index.shown.Has(r.Key(), asked.ID), r.Caller, id)
	switch {
	case errors.Is(err, errNotShown):
		return answer{Status: http.StatusConflict, Body: entrance.Object("error", err.Error(), "requestId", asked.ID, "url", asked.URL)}
	case errors.Is(err, errDigest):
		return entrance.Failed(http.StatusPreconditionFailed, err.Error())
	case errors.Is(err, errGovern):
		return forbidden(r, "Forbidden: "+err.Error())
	case err != nil:
		return entrance.Failed(http.StatusUnprocessableEntity, err.Error())
	}
	out, err := processors.OutboundOf(h.topics.GateDecisions, row.view.ID, d, d.DecisionID)
	if rejection, ok := h.put(r, err, out); !ok {
		return rejection
	}
	o, ok := h.outcome(r.Context(), ended)
	if !ok {
		r.Record(auth.AuditAnswer, row.view.ID, p.RequestID, http.StatusAccepted)
		return accepted("requestId", p.RequestID, "decisionId", d.DecisionID)
	}
	a := p.settled(o, d.By)
	r.Record(auth.AuditAnswer, row.view.ID, p.RequestID, a.Status)
	return a
}

// outcome waits for an outcome. ok is false if the time is over, the client has disconnected, or the index has stopped.
func (h *Handler) outcome(ctx context.Context, ended <-chan outcome) (o outcome, ok bool) {
	select {
	case o = <-ended:
		return o, true
	default:
	}
	if h.config.DecisionWait <= 0 {
		return o, false
	}
	timer := h.config.Clock.NewTicker(h.config.DecisionWait)
	defer timer.Stop()
	select {
	case o = <-ended:
		return o, true
	case <-timer.C():
	case <-ctx.Done():
	case <-h.index.follows.Ended:
	}
	return o, false
}

// settled answers a request with the outcome: 200 if it is what the person wanted and decided, 409 if another one stands.
func (p permit) settled(o outcome, by string) answer {
	members := []any{"requestId", o.RequestID, "outcome", o.Outcome, "by", o.By}
	if o.Outcome == p.wanted() && o.By == by {
		return answer{Status: http.StatusOK, Body: entrance.Object(members...)}
	}
	return answer{Status: http.StatusConflict, Body: entrance.Object(append([]any{"error", "Another outcome stands"}, members...)...)}
}
