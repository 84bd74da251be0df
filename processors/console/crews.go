package console

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/seen"
	"github.com/turntable-streams/turntable/topics"
)

// The screen of crews asks the door of package crewhttp in this process, with the credential of the caller. So the door decides what
// the caller may see and do, writes the records and audits them, and a program without crews does not link it.

// crewsPrefix is where the door of crews serves its requests.
const crewsPrefix = "/api/"

// recorder is the answer of the door.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header         { return w.header }
func (w *recorder) Write(p []byte) (int, error) { return w.body.Write(p) }
func (w *recorder) WriteHeader(status int)      { w.status = cmp.Or(w.status, status) }

// ask sends a request to the door of crews, with a body unless it is nil, and decodes the answer into a value unless it is nil.
func (r *request) ask(method, path string, body, into any) (status int, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)
	defer cancel()
	var raw []byte
	if body != nil {
		if raw, err = json.Marshal(body); err != nil { // it is not valid UTF-8
			return http.StatusBadRequest, err
		}
	}
	q, err := http.NewRequestWithContext(ctx, method, "http://"+r.Host+crewsPrefix+path, bytes.NewReader(raw))
	if err != nil {
		return http.StatusBadRequest, err
	}
	q.RemoteAddr, q.TLS, q.Host = r.RemoteAddr, r.TLS, r.Host
	for _, name := range []string{"Authorization", "Cookie", "X-Request-Id", "Traceparent"} {
		if v := r.Header.Values(name); v != nil {
			q.Header[name] = v
		}
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	w := &recorder{header: http.Header{}}
	r.console.config.Crews.ServeHTTP(w, q)
	if w.status = cmp.Or(w.status, http.StatusOK); w.status >= 300 {
		var failed struct {
			Error string `json:"error"`
		}
		_ = json.Unmarshal(w.body.Bytes(), &failed) // another form: the status says enough
		return w.status, fmt.Errorf("console: crews: %s %s", http.StatusText(w.status), failed.Error)
	}
	if into != nil {
		err = json.Unmarshal(w.body.Bytes(), into, json.MatchCaseInsensitiveNames(true), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	}
	return w.status, err
}

// crewPage is a crew.
type crewPage struct {
	ID          string
	Crews       []crewLine
	Agents      []crewAgent
	Tasks       []crewTask
	Locks       []crewLock
	Delegations []crewDelegation
	Activity    []crewActivity
	Messages    []crewMessage
	Shown       bool // texts were asked for
	CanWrite    bool
	Wrong       string
}

type crewLine struct {
	ID           string `json:"id"`
	ProjectName  string `json:"projectName"`
	SystemPaused bool   `json:"systemPaused"`
}

type crewAgent struct {
	ID   string `json:"id"`
	Role struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"role"`
	Status, Phase, Task, OutputPreview, ExitError string
	InputTokens, OutputTokens                     int64
	PendingMessages                               int
	Autopilot                                     bool
	ToolCalls                                     []struct{ Title, Kind, Status string }
	Permissions                                   []crewPermission
}

type crewPermission struct {
	ID                   string `json:"id"`
	ToolName             string
	Arguments, Content   topics.Raw
	Timestamp, ExpiresAt string
	Dangerous, Truncated bool
	ArgsSHA256           string `json:"argsSha256"`
	Options              topics.Raw
	Shown                string   `json:"-"`
	Diffs                []diff   `json:"-"`
	Choices              []option `json:"-"`
}

type crewTask struct {
	ID                                                            string `json:"id"`
	Title, Description, DagStatus, AssignedAgentID, FailureReason string
	DependsOn                                                     []string
	Depth                                                         int `json:"-"`
}

type crewLock struct {
	FilePath, AgentRole, Repository, Reason, ExpiresAt string
	AgentID                                            string
}

type crewDelegation struct {
	FromAgentID, ToRole, Task, Status, CreatedAt string
}

type crewActivity struct {
	AgentRole, ActionType, Summary, Timestamp string
	AgentID                                   string
}

type crewMessage struct {
	From, To, Content, Timestamp, Type string
}

// lately is how many messages and activities are shown: the newest.
const lately = 100

func crews(r *request) {
	b := &crewPage{ID: r.first("id"), Shown: r.first("show") == "texts", CanWrite: r.can(auth.Write)}
	p := page{Title: "Crews", Section: "/crews", About: aboutCrews, Body: b}
	if status, err := r.ask(http.MethodGet, "crews", nil, &b.Crews); err != nil {
		if status == http.StatusForbidden || status == http.StatusUnauthorized {
			r.fail(status, "You may not see crews.")
			return
		}
		p.Notices = append(p.Notices, "The crews cannot be read now.")
	}
	if b.ID == "" && len(b.Crews) == 1 {
		b.ID = b.Crews[0].ID
	}
	if b.ID != "" {
		of := "?" + url.Values{"crewId": {b.ID}, "limit": {fmt.Sprint(lately)}}.Encode()
		for path, into := range map[string]any{
			"agents": &b.Agents, "tasks": &b.Tasks, "coordination/locks": &b.Locks, "delegations": &b.Delegations,
			"coordination/activity": &b.Activity, "bus/messages": &b.Messages,
		} {
			if _, err := r.ask(http.MethodGet, path+of, nil, into); err != nil {
				p.Notices = append(p.Notices, "A part of the crew cannot be read now: "+path+".")
				r.console.logUnreadable(err)
			}
		}
		r.complete(b)
	}
	r.show(http.StatusOK, "crews", p)
}

// complete masks and hides texts, and orders the tasks by what they depend on.
func (r *request) complete(b *crewPage) {
	text := func(kind, s string) string {
		if !b.Shown || s == "" {
			return ""
		}
		return r.masked(kind, b.ID, []byte(s))
	}
	for i := range b.Agents {
		a := &b.Agents[i]
		a.Task, a.OutputPreview = text("message", a.Task), text("conversation", a.OutputPreview)
		a.ToolCalls = a.ToolCalls[max(0, len(a.ToolCalls)-10):]
		for j := range a.Permissions {
			q := &a.Permissions[j]
			if b.Shown {
				q.Shown = r.masked("arguments", b.ID, q.Arguments)
				for _, e := range append(edits(q.Content), edits(q.Arguments)...) {
					q.Diffs = append(q.Diffs, diffOf(r.masked("arguments", b.ID, []byte(e.before)), r.masked("arguments", b.ID, []byte(e.after)), e.file))
				}
				_ = json.Unmarshal(q.Options, &q.Choices) // of another form: there are none to choose
			}
		}
		for j := range a.ToolCalls {
			a.ToolCalls[j].Title = text("arguments", a.ToolCalls[j].Title)
		}
	}
	for i := range b.Messages {
		b.Messages[i].Content = text("message", b.Messages[i].Content)
	}
	for i := range b.Activity {
		b.Activity[i].Summary = text("message", b.Activity[i].Summary)
	}
	for i := range b.Delegations {
		b.Delegations[i].Task = text("message", b.Delegations[i].Task)
	}
	depths := map[string]int{}
	for range b.Tasks { // each pass makes the depths right that are one larger
		changed := false
		for _, t := range b.Tasks {
			depth := 0
			for _, d := range t.DependsOn {
				depth = max(depth, depths[d]+1)
			}
			if depth = min(depth, len(b.Tasks)); depths[t.ID] != depth {
				depths[t.ID], changed = depth, true
			}
		}
		if !changed {
			break
		}
	}
	for i := range b.Tasks {
		t := &b.Tasks[i]
		t.Depth = min(depths[t.ID], 3)
		t.Description = text("message", cmp.Or(t.Title, t.Description))
	}
	slices.SortStableFunc(b.Tasks, func(x, y crewTask) int { return cmp.Compare(depths[x.ID], depths[y.ID]) })
}

// Mention is how people mention an agent.
func (a crewAgent) Mention() string { return "@" + a.ID[:min(8, len(a.ID))] }

// answerCrew answers the permission request of an agent.
func answerCrew(r *request, form url.Values) {
	if verdict := form.Get("verdict"); verdict != "approve" && verdict != "deny" {
		r.fail(http.StatusUnprocessableEntity, "Nothing was done: go back and choose Approve or Deny.")
		return
	}
	body := map[string]any{"approved": form.Get("verdict") == "approve", "requestId": form.Get("request"), "reason": form.Get("reason")}
	for field, name := range map[string]string{"option": "optionId", "args_sha256": "argsSha256"} {
		if v := form.Get(field); v != "" {
			body[name] = v
		}
	}
	status, err := r.ask(http.MethodPost, "agents/"+url.PathEscape(form.Get("agent"))+"/permission", body, nil)
	switch {
	case status == http.StatusConflict && !strings.Contains(err.Error(), seen.Refusal): // crewhttp has two reasons for this status
		r.to("other", "/crews", "id", form.Get("crew"))
	case err != nil:
		r.fail(status, "The answer was not written: "+visible(strings.TrimPrefix(err.Error(), "console: crews: ")))
	case status == http.StatusAccepted: // no outcome was seen yet
		r.to("written", "/crews", "id", form.Get("crew"))
	default:
		r.to("decided", "/crews", "id", form.Get("crew"))
	}
}

// writeCrew writes a message to an agent, or to all agents of a crew. One that begins with a mention goes to that agent.
func writeCrew(r *request, form url.Values) {
	to, text := form.Get("to"), form.Get("text")
	path := "agents/" + url.PathEscape(to) + "/message"
	if to == "" {
		path = "crews/" + url.PathEscape(form.Get("crew")) + "/message"
	}
	if status, err := r.ask(http.MethodPost, path, map[string]any{"text": text}, nil); err != nil {
		r.fail(status, "The message was not written: "+visible(strings.TrimPrefix(err.Error(), "console: crews: ")))
		return
	}
	r.to("sent", "/crews", "id", form.Get("crew"), "show", "texts")
}
