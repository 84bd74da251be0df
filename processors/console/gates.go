package console

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/topics"
)

func gates(r *request) {
	l := listing[openGate]{Page: "/gates", Noun: "open gate", Empty: "No gate waits for a person"}
	l = listed(r, l, pageSize, nil, gateEntries(r.console.follower.index))
	r.show(http.StatusOK, "gates", page{Title: "Gates", Section: "/gates", About: aboutGates, Body: l})
}

// gateEntries are the open gates.
func gateEntries(x *index) entries[*openGate, openGate] {
	return entries[*openGate, openGate]{
		of: &x.gates, place: func(ms int64, id string) *openGate { return &openGate{Opened: ms, ID: id} },
		cursor: func(g *openGate) (int64, string) { return g.Opened, g.ID },
		see:    func(g *openGate) (openGate, string, bool) { return *g, g.Session, true },
	}
}

// gatePage is one gate.
type gatePage struct {
	Gate       gate.View
	Opened     int64
	Expires    int64
	Shown      bool   // the request was asked for
	Next       string // the gate that took the place of this one
	Args       string
	Message    string
	Options    []option
	Diffs      []diff
	Answer     string
	Effective  string
	CanApprove bool
	CanAnswer  bool
	CanDeny    bool
	CanEdit    bool
	ForSession bool // an approval may count for the session
	ForAgent   bool
	Compared   *diff
	Edited     string // what the form had
	Typed      string // the answer that the form had
	Reason     string
	Wrong      string
}

// option is one of the choices of a request.
type option struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

func showGate(r *request) {
	session, id := r.first("session"), r.first("id")
	v, next, ok := r.gateOf(session, id)
	if !ok {
		return
	}
	b := r.gatePageOf(v)
	if next.GateID != v.GateID {
		b.Next = next.GateID
	}
	p := page{Title: "Gate", Section: "/gates", About: aboutGates, Body: b}
	if mine := r.first("decision"); mine != "" && v.Outcome != nil {
		said := "decided"
		if v.Outcome.DecisionID != mine {
			said = "other"
		}
		p.Said, p.Failed = saying(said)
	}
	r.show(http.StatusOK, "gate", p)
}

// gateOf reads a gate of a session, and the request that took its place, if there is one: otherwise the gate again. It answers the
// request if there is no such gate.
func (r *request) gateOf(session, id string) (v, next gate.View, ok bool) {
	if !r.Caller.Allowed(session) {
		r.fail(http.StatusNotFound, "There is no such gate.")
		return v, next, false
	}
	views, i, err := []gate.View(nil), -1, error(nil)
	for range 2 { // the second time with what was written meanwhile
		if views, err = r.gatesOf(session); err != nil {
			break
		}
		if i = slices.IndexFunc(views, func(v gate.View) bool { return v.GateID == id }); i >= 0 {
			break
		}
		if err = r.console.follower.rows.CatchUp(r.Context()); err != nil {
			break
		}
	}
	if err != nil {
		r.console.logUnreadable(err)
		r.fail(http.StatusServiceUnavailable, "The gate cannot be read now, or is not known. Try again.")
		return v, next, false
	}
	if i < 0 {
		r.fail(http.StatusNotFound, "There is no such gate: it ended so long ago that it is forgotten, or its session was purged.")
		return v, next, false
	}
	return views[i], *gate.Successor(views, &views[i]), true
}

func (r *request) gatePageOf(v gate.View) *gatePage {
	b := &gatePage{
		Gate: v, Opened: millis(v.RequestedAt), Expires: millis(v.ExpiresAt), Shown: r.first("show") == "request",
		CanApprove: slices.Contains(v.Allowed, topics.VerdictApprove), CanAnswer: slices.Contains(v.Allowed, topics.VerdictAnswer),
		CanDeny: slices.Contains(v.Allowed, topics.VerdictDeny), CanEdit: slices.Contains(v.Allowed, topics.VerdictEdit),
		ForSession: !v.Dangerous, ForAgent: !v.Dangerous && r.can(auth.Control) && r.everything(),
	}
	if v.Options != nil {
		_ = json.Unmarshal(v.Options, &b.Options) // of another form: there are none to choose
	}
	if !b.Shown {
		return b
	}
	b.Args = r.masked("arguments", v.SessionID, v.Args)
	b.Message = r.masked("message", v.SessionID, []byte(v.Message))
	for i := range b.Options {
		b.Options[i].Name = r.masked("options", v.SessionID, []byte(b.Options[i].Name))
	}
	for _, e := range edits(v.Args) {
		b.Diffs = append(b.Diffs, diffOf(r.masked("arguments", v.SessionID, []byte(e.before)), r.masked("arguments", v.SessionID, []byte(e.after)), e.file))
	}
	if v.Outcome != nil {
		b.Answer = r.masked("answer", v.SessionID, v.Outcome.Answer)
		b.Effective = r.masked("arguments", v.SessionID, v.Outcome.EffectiveArgs)
	}
	if b.Edited == "" {
		b.Edited = escaped(pretty(v.Args))
	}
	return b
}

// escaped returns JSON in which characters that are not visible are escapes, which mean the same.
func escaped(text string) string {
	var b strings.Builder
	for _, c := range text {
		if hidden(c) && c != '\n' && c != '\t' {
			fmt.Fprintf(&b, `\u%04x`, c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// pretty indents JSON.
func pretty(raw topics.Raw) string {
	v := jsontext.Value(slices.Clone(raw))
	if v.Indent(jsontext.WithIndent("  ")) != nil {
		return string(raw)
	}
	return string(v)
}
