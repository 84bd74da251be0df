package console

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
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
		of: &x.gates, place: func(ms int64, id string) *openGate { return &openGate{opened: ms, id: id} },
		cursor: func(g *openGate) (int64, string) { return g.opened, g.id },
		see:    func(g *openGate) (openGate, string, bool) { return *g, g.session, true },
	}
}

// The fields of an open gate for templates.

// ID returns the gate's ID.
func (g openGate) ID() string { return g.id }

// Session returns the ID of the session.
func (g openGate) Session() string { return g.session }

// Tool returns the name of the tool.
func (g openGate) Tool() string { return g.tool }

// Kind returns what is asked for.
func (g openGate) Kind() string { return g.kind }

// Agent returns who asks.
func (g openGate) Agent() string { return g.agent }

// Dangerous reports whether the request is dangerous.
func (g openGate) Dangerous() bool { return g.dangerous }

// Opened returns when the gate was opened, and Expires when it expires.
func (g openGate) Opened() int64 { return g.opened }

// Expires returns when the gate expires.
func (g openGate) Expires() int64 { return g.expires }

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

// edit is a text that a tool replaces by another one.
type edit struct{ file, before, after string }

// editNames are how tools name the texts of an edit.
var editNames = []struct{ before, after string }{
	{"old_string", "new_string"}, {"oldText", "newText"}, {"old_str", "new_str"}, {"old_text", "new_text"}, {"before", "after"},
}

// mostEdits bounds the edits of a request that are shown as such. The arguments are shown too.
const mostEdits = 20

// fileNames are how tools name the file of an edit.
var fileNames = []string{"file_path", "path", "file"}

// mostDepth is how deep edits are looked for.
const mostDepth = 100

// edits returns the edits in the arguments of a call, wherever they are, in their order. An edit is of the file that its object names, or
// of that of the object around it. Names that disagree are all given.
func edits(args topics.Raw) (list []edit) {
	var walk func(raw jsontext.Value, files []string, depth int)
	walk = func(raw jsontext.Value, files []string, depth int) {
		d := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		opening, err := d.ReadToken()
		if err != nil || depth > mostDepth {
			return
		}
		var inner []jsontext.Value
		texts := map[string]string{}
		for err == nil && (d.PeekKind() != ']' && d.PeekKind() != '}') {
			name := ""
			if opening.Kind() == '{' {
				token, failed := d.ReadToken()
				if failed != nil {
					return
				}
				name = token.String()
			}
			var v jsontext.Value
			if v, err = d.ReadValue(); err != nil {
				return
			}
			switch v.Kind() {
			case '{', '[':
				inner = append(inner, slices.Clone(v))
			case '"':
				var text string
				if json.Unmarshal(v, &text, jsontext.AllowInvalidUTF8(true)) == nil {
					texts[name] = text
					if slices.Contains(fileNames, name) && !slices.Contains(files, text) {
						files = append(slices.Clone(files), text)
					}
				}
			}
		}
		for _, n := range editNames {
			if after, ok := texts[n.after]; ok && len(list) < mostEdits {
				list = append(list, edit{strings.Join(files, " or "), texts[n.before], after})
			}
		}
		for _, v := range inner {
			walk(v, files, depth+1)
		}
	}
	if k := jsontext.Value(args).Kind(); k == '{' || k == '[' {
		walk(jsontext.Value(args), nil, 0)
	}
	return list
}

// diff is the difference of two texts by lines.
type diff struct {
	File  string
	Lines []diffLine
	Whole bool // the texts are too long to be compared: all lines of both are there
}

// diffLine is a line that is in both texts (Sign is a space), in the first only (-) or in the second only (+).
type diffLine struct{ Sign, Text string }

// mostCompared is how many pairs of lines are compared at most.
const mostCompared = 4_000_000

func diffOf(before, after, file string) diff {
	a, b := lines(before), lines(after)
	d := diff{File: visible(file)}
	add := func(sign string, texts ...string) {
		for _, t := range texts {
			d.Lines = append(d.Lines, diffLine{sign, t})
		}
	}
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	add(" ", a[:head]...)
	same, end := a[len(a)-tail:], tail
	a, b = a[head:len(a)-end], b[head:len(b)-end]
	if d.Whole = len(a)*len(b) > mostCompared; d.Whole {
		add("-", a...)
		add("+", b...)
	} else {
		// longest[i][j] is the length of the longest common sequence of the lines from i and from j on.
		longest := make([][]int32, len(a)+1)
		for i := range longest {
			longest[i] = make([]int32, len(b)+1)
		}
		for i := len(a) - 1; i >= 0; i-- {
			for j := len(b) - 1; j >= 0; j-- {
				if longest[i][j] = max(longest[i+1][j], longest[i][j+1]); a[i] == b[j] {
					longest[i][j] = longest[i+1][j+1] + 1
				}
			}
		}
		i, j := 0, 0
		for i < len(a) || j < len(b) {
			switch {
			case i < len(a) && j < len(b) && a[i] == b[j]:
				add(" ", a[i])
				i, j = i+1, j+1
			case j == len(b) || i < len(a) && longest[i+1][j] >= longest[i][j+1]:
				add("-", a[i])
				i++
			default:
				add("+", b[j])
				j++
			}
		}
	}
	add(" ", same...)
	return d
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// Changed says how many lines differ.
func (d diff) Changed() string {
	removed, added := 0, 0
	for _, l := range d.Lines {
		switch l.Sign {
		case "-":
			removed++
		case "+":
			added++
		}
	}
	return several(removed, "line") + " removed, " + strconv.Itoa(added) + " added"
}
