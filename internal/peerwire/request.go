package peerwire

import (
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/digests"
)

const (
	// MaxTimeout is the longest Timeout of a request.
	MaxTimeout = 10 * time.Minute
	// MaxToken is the largest CallbackToken of a request, in bytes.
	MaxToken = 4 << 10
)

// Request is the body of POST /api/peer/delegate. Optional texts are empty if they are absent. Formatted and logged, a request
// is its task ID and the lengths of its content and its path.
type Request struct {
	// TaskID identifies the task to the dispatcher and, under its token, to the receiver. It is not trimmed.
	TaskID string
	// ParentInstanceID is who the dispatcher says it is, for display. The token says who it is.
	ParentInstanceID string
	Content          string
	ParentRunID      string
	ParentSessionID  string
	AgentID          string // trimmed; empty for the receiver's default agent
	Model            string // empty for the agent's model
	// Timeout is the time that the dispatcher has left when it sends the request; 0 if it does not say.
	Timeout time.Duration
	// Path is the way of the task. Hops is at least 1 in a request that was read.
	Path Path
	// CallbackToken is sent with the reply to the callback service that the receiver has configured for the dispatcher's
	// token; empty without a callback. It is a secret of printable ASCII.
	CallbackToken string
}

// ReadRequest reads a body. A blank one counts as {}. The refusal is nil for a valid request.
func ReadRequest(body []byte) (Request, *Refusal) {
	if len(body) <= MaxBody && Trim(string(body)) == "" {
		body = []byte("{}")
	}
	f, err := read(body, MaxBody)
	switch {
	case errors.Is(err, errTooLarge):
		return Request{}, TooLarge()
	case errors.Is(err, errSyntax):
		r := invalidJSON
		return Request{}, &r
	}
	req, ok := f.request()
	if err != nil || !ok {
		r := invalidRequest
		return Request{}, &r
	}
	return req, nil
}

func (f fields) request() (r Request, ok bool) {
	r.Path.Hops = 1
	task, _, taskOK := f.text("taskId")
	parent, given, parentOK := f.text("parentInstanceId")
	content, _, contentOK := f.text("content")
	if !taskOK || task == "" || !isExact(f["taskId"]) || !given || !parentOK || !contentOK || content == "" {
		return r, false
	}
	r.TaskID, r.ParentInstanceID, r.Content = task, parent, content
	for name, field := range map[string]*string{
		"parentRunId": &r.ParentRunID, "parentSessionId": &r.ParentSessionID, "agentId": &r.AgentID, "model": &r.Model,
	} {
		text, _, ok := f.text(name)
		if !ok || Length(text) > MaxID {
			return r, false
		}
		*field = text
	}
	r.AgentID = Trim(r.AgentID)
	ms, _, msOK := f.number("timeoutMs")
	r.Timeout = time.Duration(min(max(math.Trunc(ms), 0), float64(MaxTimeout.Milliseconds()))) * time.Millisecond
	if !msOK || Length(task) > MaxID || Length(parent) > MaxID {
		return r, false
	}
	return r, f.path(&r.Path) && f.callback(&r.CallbackToken)
}

// callback reads the member callback. Without a token it is invalid: the dispatcher could not tell who calls back.
func (f fields) callback(token *string) bool {
	v := f["callback"]
	if kind := v.Kind(); kind == 0 || kind == 'n' {
		return true
	}
	members, err := object(v)
	text, _, ok := members.text("token")
	if err != nil || !ok || Trim(text) == "" || len(text) > MaxToken || strings.ContainsFunc(text, unprintable) {
		return false
	}
	*token = text
	return true
}

// unprintable reports whether a header cannot carry a character.
func unprintable(r rune) bool { return r < ' ' || r > '~' }

// path reads the path. A count that is smaller than the chain does not make the chain shorter.
func (f fields) path(p *Path) bool {
	hops, _, ok := f.number("hopCount")
	if !ok || hops != math.Trunc(hops) || hops < 0 || hops > math.MaxInt32 {
		return false
	}
	chain, ok := f.texts("instanceChain", maxChain)
	for _, id := range chain {
		ok = ok && id != "" && Length(id) <= MaxID
	}
	p.Hops, p.Chain = max(1, int(hops), len(chain)), chain
	return ok
}

// Body returns the body of the request. Texts that are not UTF-8 are changed to UTF-8.
func (r Request) Body() []byte {
	type callback struct {
		Token string `json:"token"`
	}
	body, err := json.Marshal(struct {
		TaskID           string   `json:"taskId"`
		ParentInstanceID string   `json:"parentInstanceId"`
		ParentRunID      string   `json:"parentRunId,omitzero"`
		ParentSessionID  string   `json:"parentSessionId,omitzero"`
		AgentID          string   `json:"agentId,omitzero"`
		Model            string   `json:"model,omitzero"`
		Content          string   `json:"content"`
		TimeoutMS        int64    `json:"timeoutMs,omitzero"`
		HopCount         int      `json:"hopCount,omitzero"`
		InstanceChain    []string `json:"instanceChain,omitempty"`
		Callback         callback `json:"callback,omitzero"`
	}{
		r.TaskID, r.ParentInstanceID, r.ParentRunID, r.ParentSessionID, r.AgentID, r.Model, r.Content,
		r.Timeout.Milliseconds(), r.Path.Hops, r.Path.Chain,
		callback{r.CallbackToken},
	}, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic("peer: write a request: " + err.Error())
	}
	return body
}

// Hash returns a digest of all that the request asks for. It does not depend on the form of the JSON, on CallbackToken, which
// does not change the task, or on Timeout, which is smaller in each attempt. Two requests with the same task ID and different hashes are different tasks.
func (r Request) Hash() string {
	d := digests.Of("peer request", append([]string{
		r.TaskID, r.ParentInstanceID, r.Content, r.ParentRunID, r.ParentSessionID, r.AgentID, r.Model, strconv.Itoa(r.Path.Hops),
	}, r.Path.Chain...)...)
	return hex.EncodeToString(d[:])
}

// String describes the request without its texts. Only the task ID is shown.
func (r Request) String() string {
	return fmt.Sprintf("task %q: content of %d characters, %d hops", r.TaskID, Length(r.Content), r.Path.Hops)
}

// GoString returns the text of String.
func (r Request) GoString() string { return r.String() }

// LogValue returns the text of String.
func (r Request) LogValue() slog.Value { return slog.StringValue(r.String()) }
