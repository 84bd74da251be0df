package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/operations"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

const (
	// effectWait is how long an action waits for its effect, and effectPoll how often it looks.
	effectWait = 5 * time.Second
	effectPoll = 50 * time.Millisecond
)

// await looks until done returns true, for effectWait at most, and reports whether it did. It looks once, and then when the row of the
// session has changed.
func (r *request) await(session string, kind rowKind, done func() bool) bool {
	ctx, cancel := context.WithTimeout(r.Context(), effectWait)
	defer cancel()
	tick := time.NewTicker(effectPoll)
	defer tick.Stop()
	seen := int64(-2) // no offset
	for {
		if offset, _, _ := r.console.place(session, kind); offset != seen {
			if seen = offset; done() {
				return true
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

// write writes the record of an action and reports whether it is acknowledged. Otherwise it answers the request.
func (r *request) write(out processors.Outbound, err error, page string, parameters ...any) bool {
	if err == nil && r.Publish(r.console.to, out) == nil {
		return true
	}
	r.to("unwritten", page, parameters...)
	return false
}

// cancel ends the turn that the page has shown, and no other.
func cancel(r *request, form url.Values) {
	id, turnID := form.Get("session"), form.Get("turn")
	if !r.enter(id) {
		return
	}
	v, ok, err := r.turnOf(id)
	requestID, found := target(v, turnID)
	if err != nil {
		r.console.logUnreadable(err)
		r.fail(http.StatusServiceUnavailable, "Nothing was done: the session cannot be read now, or is not known. Try again.")
		return
	}
	if !ok || !found {
		r.to("stale", "/session", "id", id)
		return
	}
	out, err := operations.Control(r.console.catalog, id, topics.Control{
		Action: topics.ActionCancel, RequestID: optional(requestID), Reason: optional(form.Get("reason")),
	}, turnID, r.by())
	if !r.write(out, err, "/session", "id", id) {
		return
	}
	r.Record(auth.AuditCancel, id, turnID, http.StatusSeeOther)
	r.conclude("cancelled", id, func() bool {
		v, ok, err := r.turnOf(id)
		_, open := target(v, turnID)
		return err == nil && (!ok || !open)
	})
}

// target finds the message of a turn, and its request ID, if it has one.
func target(v turn.View, turnID string) (requestID string, found bool) {
	if v.Turn != nil && v.Turn.TurnID == turnID {
		return v.Turn.RequestID, true
	}
	for _, w := range v.Waiting {
		if w.TurnID == turnID {
			return w.RequestID, true
		}
	}
	return "", false
}

// purge deletes a session. The nonce of the form is that of the page, so that a repeat of the form purges nothing new.
func purge(r *request, form url.Values) {
	id := form.Get("session")
	if !r.enter(id) {
		return
	}
	if form.Get("sure") != id {
		r.fail(http.StatusUnprocessableEntity, "Nothing was done: to purge the session, repeat its ID in the form.")
		return
	}
	out, err := operations.Control(r.console.catalog, id,
		topics.Control{Action: topics.ActionPurge, Reason: optional(form.Get("reason"))}, "console/"+id+"/"+form.Get("nonce"), r.by())
	if !r.write(out, err, "/session", "id", id) {
		return
	}
	r.Record(auth.AuditPurge, id, "", http.StatusSeeOther)
	r.conclude("purged", id, func() bool {
		v, ok, err := r.turnOf(id)
		return errors.Is(err, errForgotten) || err == nil && (!ok || v.Turn == nil && len(v.Waiting) == 0 && v.Messages == 0)
	})
}

// conclude waits for the effect of a record about a session and shows the session.
func (r *request) conclude(said, id string, done func() bool) {
	if !r.await(id, turnRow, done) {
		said = "written"
	}
	r.to(said, "/session", "id", id)
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// review is the verdict of the first button of a form, which browsers press when someone types Enter into a field: nothing is decided.
const review = "review"

// decide writes a decision about a gate, or compares edited arguments with those of the request.
func decide(r *request, form url.Values) {
	session, id := form.Get("session"), form.Get("gate") // a field with the name id would hide the id of the form from scripts
	if !r.enter(session) {
		return
	}
	_, v, ok := r.gateOf(session, id)
	if !ok {
		return
	}
	d, wrong := r.decision(v, form)
	if v.Outcome != nil { // the button was stale
		r.to("", "/gate", "session", session, "id", v.GateID, "decision", d.DecisionID)
		return
	}
	if !r.accepts(v, d, wrong, form) {
		return
	}
	out, err := processors.OutboundOf(r.console.catalog.GateDecisions, session, d, d.DecisionID)
	if !r.write(out, err, "/gate", "session", session, "id", v.GateID) {
		return
	}
	r.Record(auth.AuditAnswer, session, v.GateID, http.StatusSeeOther)
	said, last := "", v.GateID
	if !r.await(session, gateRow, func() bool {
		views, err := r.gatesOf(session)
		if err != nil {
			return false
		}
		last, ok = settled(views, last)
		return ok
	}) {
		said = "written"
	}
	r.to(said, "/gate", "session", session, "id", last, "decision", d.DecisionID)
}

// settled follows a gate to the request that took its place, and reports whether that has ended.
func settled(views []gate.View, id string) (last string, ended bool) {
	i := slices.IndexFunc(views, func(v gate.View) bool { return v.GateID == id })
	if i < 0 {
		return id, true // purged
	}
	v := gate.Successor(views, &views[i])
	return v.GateID, v.Outcome != nil
}

// accepts reports whether a decision may be written. Otherwise it shows the form again, with what was entered.
func (r *request) accepts(v gate.View, d topics.GateDecision, wrong string, form url.Values) bool {
	verdict := form.Get("verdict")
	looks := verdict == "compare" || verdict == review
	if wrong == "" && !looks {
		if err := v.Check(d); err != nil {
			wrong = strings.TrimPrefix(err.Error(), "gate: invalid decision: ")
		}
	}
	if wrong != "" || looks {
		r.again(v, form, wrong)
		return false
	}
	return true
}

// decision returns the decision of a form. wrong says why it cannot be written.
func (r *request) decision(v gate.View, form url.Values) (d topics.GateDecision, wrong string) {
	d = topics.GateDecision{
		GateID: v.GateID, SessionID: v.SessionID, Verdict: topics.GateVerdict(form.Get("verdict")), OptionID: form.Get("option"),
		Reason: form.Get("reason"), Scope: topics.GateScope(form.Get("scope")), ArgsSHA256: form.Get("args_sha256"), By: r.by(), Via: "console",
	}
	if d.Verdict == "edit" { // the button that approves the edited arguments
		d.Verdict, d.EditedArgs = topics.VerdictApprove, topics.Raw(strings.TrimSpace(form.Get("edited")))
	}
	switch d.Verdict {
	case topics.VerdictAnswer:
		d.Answer = topics.Raw(strings.TrimSpace(form.Get("answer")))
		if !jsontext.Value(d.Answer).IsValid() { // people write text
			d.Answer, _ = jsontext.AppendQuote(nil, form.Get("answer"))
		}
	case topics.VerdictDeny:
		d.Scope = ""
	}
	switch {
	case d.Verdict == topics.VerdictAnswer && strings.TrimSpace(form.Get("answer")) == "":
		wrong = "the answer is empty"
	case d.EditedArgs != nil && !jsontext.Value(d.EditedArgs).IsValid():
		wrong = "the edited arguments are not JSON"
	case d.Verdict == topics.VerdictApprove && d.ArgsSHA256 == "" && v.ArgsSHA256 != "":
		wrong = "you have not seen the request: show it first"
	case d.Scope == topics.ScopeAgent && !(r.can(auth.Control) && r.everything()):
		wrong = "an approval for all sessions of the agent needs the right to control them"
	}
	id := digests.Of("console decision", form.Get("gate"), string(d.Verdict), d.OptionID, string(d.Answer), string(d.EditedArgs), d.Reason, string(d.Scope),
		d.By)
	sum := sha256.Sum256(id[:])
	d.DecisionID = hex.EncodeToString(sum[:])
	return d, wrong
}

// again shows the form of a gate again, with what was entered.
func (r *request) again(v gate.View, form url.Values, wrong string) {
	q := r.URL.Query()
	q.Set("session", v.SessionID)
	q.Set("id", v.GateID)
	if form.Get("args_sha256") != "" { // it was shown
		q.Set("show", "request")
	}
	r.URL.RawQuery = q.Encode()
	b := r.gatePageOf(v)
	b.Wrong, b.Reason, b.Typed = wrong, form.Get("reason"), form.Get("answer")
	status := http.StatusOK
	if wrong != "" {
		status = http.StatusUnprocessableEntity
	}
	if edited := strings.ReplaceAll(form.Get("edited"), "\r\n", "\n"); edited != "" && b.Shown {
		b.Edited = escaped(edited)
		d := diffOf(r.compared(v, v.Args), r.compared(v, topics.Raw(edited)), "")
		b.Compared = &d
	}
	r.show(status, "gate", page{Title: "Gate", Section: "/gates", Body: b})
}

// compared returns arguments for a comparison: characters that are not visible are escapes.
func (r *request) compared(v gate.View, args topics.Raw) string {
	return r.masked("arguments", v.SessionID, []byte(escaped(pretty(args))))
}
