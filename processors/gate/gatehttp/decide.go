package gatehttp

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/processors/internal/seen"
	"github.com/turntable-streams/turntable/topics"
)

// via is the Via of the decisions that the door writes.
const via = "http"

// decide writes a decision and answers with the outcome of its gate.
func (h *Handler) decide(r *request) answer {
	id := r.Parts[0]
	body, refusal := r.ReadBody(r.W)
	if refusal != nil {
		return refusal.Answer()
	}
	wait, ok := waitOf(r.URL.Query(), h.config.DecisionWait)
	if !ok {
		return badWait()
	}
	key, ok := entrance.IdempotencyKey(r.Request)
	if !ok {
		return entrance.Failed(http.StatusBadRequest, "Idempotency-Key is not usable")
	}
	d, err := parseDecision(body)
	if err != nil {
		return entrance.Failed(http.StatusBadRequest, err.Error())
	}
	session, rejection, ok := h.find(r, id)
	if !ok {
		return rejection
	}
	if err := checkKnown(d); err != nil {
		return entrance.Failed(http.StatusUnprocessableEntity, err.Error())
	}
	if d.Scope == topics.ScopeAgent && !governs(r) {
		return forbid(r, "Forbidden: an approval for all sessions of the agent needs the right to control them")
	}
	d.GateID, d.SessionID, d.By, d.Via = id, session, r.Caller.Name(), via
	if d.DecisionID, err = h.identify(d, key); err != nil {
		return entrance.Failed(http.StatusBadRequest, "Body cannot be written as a decision")
	}
	row, err := h.index.row(r.Context(), r.Key(), session)
	if err != nil {
		return h.unreadable(err)
	}
	v := gate.Successor(row.all(), row.view(id))
	if v == nil || v.Outcome != nil {
		return settled(d, v)
	}
	if rejection, ok := check(v, d); !ok {
		return rejection
	}
	d.GateID = v.GateID
	shown := h.index.shown.Has(r.Key(), id) || h.index.shown.Has(r.Key(), v.GateID) // the arguments are the same
	blind := d.ArgsSHA256 == "" && !seen.Whole(v.Args) && !shown
	if d.Verdict == topics.VerdictApprove && d.EditedArgs == nil && blind {
		return answer{Status: http.StatusConflict, Body: entrance.Object("error", seen.Refusal, "url", GatesPath+"/"+url.PathEscape(v.GateID))}
	}
	out, err := processors.OutboundOf(h.topics.GateDecisions, session, d, d.DecisionID)
	if err != nil {
		return entrance.Internal()
	}
	over := h.index.over(v.GateID) // before the record is written, so that a gate that is forgotten at once is seen too
	if refusal := r.Publish(h.to, out); refusal != nil {
		return refusal.Answer()
	}
	a := h.outcome(r, d, v, over, func(over <-chan struct{}) bool { return over == nil || h.await(r.Context(), over, wait) })
	r.Record(auth.AuditAnswer, session, id, a.Status)
	return a
}

// outcome answers with the outcome of a gate after a decision was written.
func (h *Handler) outcome(r *request, d topics.GateDecision, v *gate.View, over <-chan struct{}, wait func(<-chan struct{}) bool) answer {
	for {
		if !wait(over) {
			return gateAnswer(http.StatusAccepted, "", d.DecisionID, v)
		}
		row, err := h.index.row(r.Context(), r.Key(), d.SessionID)
		if err != nil {
			return gateAnswer(http.StatusAccepted, "", d.DecisionID, v)
		}
		ended := row.view(d.GateID)
		next := gate.Successor(row.all(), ended)
		if next == ended || next.Outcome != nil {
			return settled(d, next)
		}
		// The gate was closed before the decision was read. The group applies the decision to the request in its place.
		d.GateID, v, over = next.GateID, next, h.index.over(next.GateID)
		if over == nil {
			return gateAnswer(http.StatusAccepted, "", d.DecisionID, v)
		}
	}
}

// check returns the answer to a decision that its open gate does not accept.
func check(v *gate.View, d topics.GateDecision) (rejection answer, ok bool) {
	err := v.Check(d)
	switch {
	case err == nil:
		return answer{}, true
	case errors.Is(err, gate.ErrDigest):
		a := gateAnswer(http.StatusPreconditionFailed, "args_sha256 is not that of the gate", d.DecisionID, v)
		return a, false
	}
	return entrance.Failed(http.StatusUnprocessableEntity, err.Error()), false
}

// settled answers a decision about a gate that has ended. The view is nil if its outcome is no longer kept.
func settled(d topics.GateDecision, v *gate.View) answer {
	switch {
	case v == nil:
		return entrance.Failed(http.StatusConflict, "The gate has ended, and its outcome is no longer kept")
	case v.Outcome == nil: // not reached
		return gateAnswer(http.StatusAccepted, "", d.DecisionID, v)
	case v.Outcome.DecisionID == d.DecisionID && v.Outcome.Status == wanted(d.Verdict):
		return gateAnswer(http.StatusOK, "", d.DecisionID, v)
	}
	return gateAnswer(http.StatusConflict, "Another outcome stands", d.DecisionID, v)
}

// wanted is the status of an outcome that a verdict asks for.
func wanted(v topics.GateVerdict) topics.GateStatus {
	if v == topics.VerdictDeny {
		return topics.GateDenied
	}
	return topics.GateApproved
}

// governs reports whether the caller may control all sessions of the agent. It tries a session that does not exist.
func governs(r *request) bool { return r.Caller.Can(auth.Control) && r.Caller.Allowed(rand.Text()) }

func forbid(r *request, text string) answer {
	return r.Refuse(&entrance.Refusal{Status: http.StatusForbidden, Text: text}).Answer()
}
