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
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/delivery"
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

// mostRequeued is how many deliveries or letters one form requeues.
const mostRequeued = 1000

// requeueDeliveries tries dead deliveries again: one, or all that a page has listed.
func requeueDeliveries(r *request, form url.Values) {
	n, skipped := 0, []string{}
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	r.Request = r.WithContext(ctx)
	for _, id := range form["id"][:min(len(form["id"]), mostRequeued)] {
		session, id, _ := strings.Cut(id, " ") // the ID of a delivery has no space
		session, err := url.QueryUnescape(session)
		if err != nil || !r.Caller.Allowed(session) {
			continue
		}
		views, err := r.deliveriesOf(session)
		if err != nil {
			r.console.logUnreadable(err)
			skipped = append(skipped, id+": it cannot be read now")
			continue
		}
		i := slices.IndexFunc(views, func(v delivery.View) bool { return v.DeliveryID == id && v.Status == delivery.StatusDead })
		if i < 0 {
			continue // it is not dead any more
		}
		if err := views[i].Requeue(r.Context(), r.console.to, r.console.catalog.Agent, r.by()); err != nil {
			r.console.logUnreadable(err)
			skipped = append(skipped, id+": it cannot be written now")
			break
		}
		n++
		r.Record(auth.AuditWrite, session, id, http.StatusSeeOther)
	}
	r.result(n, len(form["id"]), skipped, "/deliveries", "status", delivery.StatusDead)
}

// requeueLetters writes dead letters back to their topics, each once: one, or all that a page has listed. As turntable requeue --all
// does, it leaves out what a group refused, unless it is the only one.
func requeueLetters(r *request, form url.Values) {
	c := r.console
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	select {
	case c.requeuing <- struct{}{}:
		defer func() { <-c.requeuing }()
	case <-ctx.Done():
		r.fail(http.StatusServiceUnavailable, "Nothing was done: others requeue dead letters now. Try again.")
		return
	}
	ids := form["id"][:min(len(form["id"]), mostRequeued)]
	c.mu.Lock()
	brokers, options := c.brokers, c.options
	c.mu.Unlock()
	w, err := operations.NewWriteBack(ctx, brokers, c.catalog, r.by(), options...)
	if err == nil {
		defer w.Close()
		err = c.follower.dead.CatchUp(ctx) // with all marks of those who wrote before
	}
	if err != nil {
		c.logUnreadable(err)
		r.fail(http.StatusServiceUnavailable, "Nothing was done: the brokers do not answer. Try again.")
		return
	}
	n, skipped := 0, []string{}
	for _, id := range ids {
		why, err := c.requeueLetter(ctx, r, w, id, len(ids) == 1)
		switch {
		case err != nil && !errors.Is(err, operations.ErrNotWritten):
			c.logUnreadable(err)
			skipped = append(skipped, id+": "+visible(err.Error()))
			r.result(n, len(ids), skipped, "/letters")
			return
		case err != nil:
			skipped = append(skipped, id+": "+visible(err.Error()))
		case why != "":
			skipped = append(skipped, id+": "+visible(why))
		default:
			n++
			r.Record(auth.AuditWrite, "", id, http.StatusSeeOther)
		}
	}
	r.result(n, len(ids), skipped, "/letters")
}

// requeueLetter writes a letter back. why says why it was not.
func (c *Console) requeueLetter(ctx context.Context, r *request, w *operations.WriteBack, id string, alone bool) (why string, err error) {
	x := c.follower.index
	x.mu.Lock()
	known := x.letters.byID[id]
	var l operations.Letter
	if known != nil {
		l = x.letters.judged(operations.LetterTopic(goka.Group(known.Group)), known)
	}
	x.mu.Unlock()
	if known == nil || !r.Caller.Allowed(known.Key) {
		return "there is no such dead letter any more", nil
	}
	if why = l.Unfit(c.catalog, c.exists); why == "" && !alone {
		if why = l.Refused(c.catalog); why == "" && l.FailedAgain {
			why = "it failed again after it was requeued: requeue it alone"
		}
	}
	if why != "" {
		return why, nil
	}
	record, err := c.readLetter(r, &l)
	switch {
	case errors.Is(err, errGone):
		return "it was deleted by age", nil
	case err != nil:
		return "", err
	}
	mark, err := w.Write(ctx, &l, record)
	if err == nil {
		topic := operations.LetterTopic(goka.Group(l.Group))
		x.mu.Lock()
		x.letters.mark(topic, mark)
		x.mu.Unlock()
	}
	return "", err
}

// result says how many of several things were done. One that was done is a redirect, so that a reload repeats nothing.
func (r *request) result(n, of int, skipped []string, page string, parameters ...any) {
	if n == of && of > 0 {
		r.to("requeued", page, parameters...)
		return
	}
	r.show(http.StatusOK, "message", pageOf("Requeue", page, resultText(n, of), skipped))
}

func resultText(n, of int) string {
	if of == 0 {
		return "Nothing was chosen."
	}
	return count(n) + " of " + count(of) + " were requeued. The others are listed above, or are not dead any more."
}

func pageOf(title, section, body string, list []string) page {
	return page{Title: title, Section: section, Body: body, Notices: list}
}
