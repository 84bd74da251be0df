package wire

import (
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/digests"
)

// MaxTimeout is the longest Timeout of a request.
const MaxTimeout = 10 * time.Minute

// Request is the body of POST /api/peer/delegate. Optional texts are empty if they are absent.
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
	return r, f.path(&r.Path)
}

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
	}{
		r.TaskID, r.ParentInstanceID, r.ParentRunID, r.ParentSessionID, r.AgentID, r.Model, r.Content,
		r.Timeout.Milliseconds(), r.Path.Hops, r.Path.Chain,
	}, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic("peer: write a request: " + err.Error())
	}
	return body
}

// Hash returns a digest of all that the request asks for. It does not depend on the form of the JSON or on Timeout, which is
// smaller in each attempt. Two requests with the same task ID and different hashes are different tasks.
func (r Request) Hash() string {
	d := digests.Of("peer request", append([]string{
		r.TaskID, r.ParentInstanceID, r.Content, r.ParentRunID, r.ParentSessionID, r.AgentID, r.Model, strconv.Itoa(r.Path.Hops),
	}, r.Path.Chain...)...)
	return hex.EncodeToString(d[:])
}
