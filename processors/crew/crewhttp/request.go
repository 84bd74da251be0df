package crewhttp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/team"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

// mayUse reports whether a caller may use a crew. What belongs to no crew, such as the event of a repository without agents, is
// for callers that may use every crew: it tries one that does not exist.
func mayUse(c auth.Caller, crew string) bool {
	return c.Allowed(cmp.Or(crew, rand.Text()))
}

// rights remembers which crews a caller may use.
type rights struct {
	auth.Caller
	seen map[string]bool
}

func (r rights) use(crew string) bool {
	if r.MayUse == nil {
		return true
	}
	may, known := r.seen[crew]
	if !known {
		may = mayUse(r.Caller, crew)
		if len(r.seen) >= maxSeen {
			clear(r.seen)
		}
		r.seen[crew] = may
	}
	return may
}

// governs reports whether a caller may control all crews.
func governs(c auth.Caller) bool { return c.Can(auth.Control) && mayUse(c, "") }

type (
	answer  = entrance.Answer
	request = entrance.Request
)

func write(w http.ResponseWriter, a answer) { a.Write(w, "Cache-Control", "no-store") }

// accepted is the answer to a request whose record is written: what it asks for follows as events.
func accepted(members ...any) answer {
	return answer{Status: http.StatusAccepted, Body: entrance.Object(append([]any{"status", "accepted"}, members...)...)}
}

func notReady() answer { return entrance.NotReady("The crews are not known yet") }

func badBody(err error) answer { return entrance.Failed(http.StatusBadRequest, err.Error()) }

func tooMany(text string, wait time.Duration) answer {
	return answer{Status: http.StatusTooManyRequests, Body: entrance.Object("error", text), RetryAfter: max(wait, time.Second)}
}

var (
	errBody = errors.New("body is not a JSON object with the members of this request")
	errKey  = errors.New("Idempotency-Key is longer than 256 bytes or has characters that are not printable")
)

const (
	// maxBodyDepth is the limit of nesting in a body. It is below that of a record because the values are nested in records.
	maxBodyDepth = topics.MaxValueDepth - 6
	// maxText is the length of the longest text of a message or a task, in bytes.
	maxText = 256 << 10
	// maxPath is the length of the longest path of a file, in bytes.
	maxPath = 4096
)

// read reads the body of a request. It accepts no unknown, repeated or wrongly typed members, so that a typing error is
// reported. Its error does not quote the body. An empty body is an empty object.
func read[T any](body []byte) (value T, err error) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return value, nil
	}
	if raw := jsontext.Value(body); codec.Deeper(raw, maxBodyDepth) || !raw.IsValid() || raw.Kind() != '{' {
		return value, errBody
	}
	if json.Unmarshal(body, &value, json.RejectUnknownMembers(true)) != nil {
		return value, errBody
	}
	return value, nil
}

// usable reports whether a text can be an ID or a name: not empty, not longer than an ID, and printable.
func usable(id string) bool {
	if id == "" || len(id) > maxID || !utf8.ValidString(id) {
		return false
	}
	for _, c := range id {
		if !unicode.IsPrint(c) {
			return false
		}
	}
	return true
}

// tokenCookie is the cookie with a token, and tokenParameter the parameter of a WebSocket's URL, because scripts cannot set its
// headers.
const (
	tokenCookie    = "flightdeck-token"
	tokenParameter = "token"
)

// withCredential returns the request with the token of its cookie, or of its URL if that is permitted, in the header
// Authorization, unless it has that header.
func withCredential(r *http.Request, fromURL bool) *http.Request {
	if r.Header.Get("Authorization") != "" {
		return r
	}
	token := ""
	if fromURL {
		token = r.URL.Query().Get(tokenParameter)
	}
	if cookie, err := r.Cookie(tokenCookie); err == nil && token == "" {
		token = cookie.Value
	}
	if token == "" {
		return r
	}
	with := r.Clone(r.Context())
	with.Header.Set("Authorization", "Bearer "+token)
	return with
}

// agent returns the row of an agent; nil for an unknown one.
func (x *Index) agent(id string) *agentRow {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.agents[id]
}

// agentOf returns the row of an agent that a caller may use. If there is none, it looks for newer rows, also if the agent is of
// another crew: the time of an answer must not tell whether an agent exists. known is an agent of another crew.
func (x *Index) agentOf(ctx context.Context, c auth.Caller, id string) (row, known *agentRow, err error) {
	may := func() bool {
		known = x.agent(id)
		return known != nil && mayUse(c, known.view.CrewID)
	}
	if err = x.look(ctx, c, only(mailbox.Agent(id)), may); err == nil && may() {
		return known, nil, nil
	}
	return nil, known, err
}

// agent returns the agent that a request is about. An agent that the caller may not use is answered like one that does not
// exist.
func (h *Handler) agent(r *request, id string) (row *agentRow, rejection answer, ok bool) {
	row, known, err := h.index.agentOf(r.Context(), r.Caller, id)
	if known != nil {
		r.Refuse(&entrance.Refusal{Status: http.StatusForbidden, Text: "the agent is of a crew that the caller may not use"})
	}
	switch {
	case err != nil:
		return nil, notReady(), false
	case row == nil:
		return nil, entrance.Failed(http.StatusNotFound, "Unknown agent"), false
	}
	if refusal := r.Session(row.view.CrewID); refusal != nil {
		return nil, refusal.Answer(), false
	}
	return row, answer{}, true
}

// crew checks that a request may use a crew, which need not exist.
func (h *Handler) crew(r *request, id string) (rejection answer, ok bool) {
	if !usable(id) {
		return entrance.Failed(http.StatusBadRequest, "crewId is missing or is not usable"), false
	}
	if refusal := r.Session(id); refusal != nil {
		return refusal.Answer(), false
	}
	return answer{}, true
}

// namedCrew is a crew and its ID.
type namedCrew struct {
	id string
	*team.State
}

// crewsOf returns the crews that a caller may use, by ID: only one if id is not empty.
func (x *Index) crewsOf(c auth.Caller, id string) (crews []namedCrew) {
	x.mu.Lock()
	known := maps.Clone(x.crews)
	x.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if (id == "" || id == name) && mayUse(c, name) {
			crews = append(crews, namedCrew{name, known[name]})
		}
	}
	return crews
}

// wantedBy returns what a list for a caller has: what belongs to the crews that the caller may use and, unless they are empty,
// to a crew and a project.
func wantedBy(c auth.Caller, crew, project string) func(crew, project string) bool {
	may := rights{c, map[string]bool{}}
	return func(ofCrew, ofProject string) bool {
		return (crew == "" || crew == ofCrew) && (project == "" || project == ofProject) && may.use(ofCrew)
	}
}
