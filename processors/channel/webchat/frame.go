package webchat

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/topics"
)

// request is a frame of a client.
type request struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Content string `json:"content"`
	Thread  string `json:"thread"`
	GateID  string `json:"gate_id"`
	Approve *bool  `json:"approve"`
}

// response is a frame to a client.
type response struct {
	Type      string `json:"type"`
	User      string `json:"user,omitzero"`
	ID        string `json:"id,omitzero"`
	Key       string `json:"key,omitzero"`
	Content   string `json:"content,omitzero"`
	Format    string `json:"format,omitzero"`
	Thread    string `json:"thread,omitzero"`
	InReplyTo string `json:"in_reply_to,omitzero"`
	Name      string `json:"name,omitzero"`
	Index     *int   `json:"index,omitzero"`
	Count     int    `json:"count,omitzero"`
	GateID    string `json:"gate_id,omitzero"`
	Tool      string `json:"tool,omitzero"`
	ExpiresMS int64  `json:"expires_ms,omitzero"`
	Code      string `json:"code,omitzero"`
	Message   string `json:"message,omitzero"`
}

func (r response) encode() []byte {
	// The text of models may have invalid UTF-8; nothing else in a response can fail.
	b, _ := json.Marshal(r, jsontext.AllowInvalidUTF8(true))
	return b
}

// The codes of error frames.
const (
	codeInvalid   = "invalid_frame"
	codeForbidden = "forbidden"
	codeRate      = "rate_limited"
	codeRetry     = "try_again"
)

func problem(id, code, message string) response {
	return response{Type: "error", ID: id, Code: code, Message: message}
}

const maxID = 128

// parse reads a frame of a client. The second result is the error frame for an unusable one, nil for others.
func parse(raw []byte) (r request, bad *response) {
	wrong := ""
	switch {
	case json.Unmarshal(raw, &r) != nil:
		r, wrong = request{}, "the frame is not a JSON object of a known form"
	case r.Type == "ping":
	case r.Type != "message" && r.Type != "decision":
		wrong = "type must be message, decision or ping"
	case !isName(r.ID):
		wrong = "id must have 1 to 128 printable ASCII characters"
	case r.Thread != "" && !isName(r.Thread):
		wrong = "thread must have at most 128 printable ASCII characters"
	case r.Type == "message" && r.Content == "":
		wrong = "content is missing"
	case r.Type == "decision" && (!isName(r.GateID) || r.Approve == nil):
		wrong = "gate_id and approve are required"
	}
	if wrong == "" {
		return r, nil
	}
	if !isName(r.ID) {
		r.ID = ""
	}
	problem := problem(r.ID, codeInvalid, wrong)
	return request{}, &problem
}

func isName(s string) bool {
	return s != "" && len(s) <= maxID && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// inbound returns the event of a message or decision of a user.
func (r request) inbound(account, user string) adapter.Inbound {
	in := adapter.Inbound{
		Event: digests.Hex(r.Type, user, r.ID),
		Origin: topics.Origin{
			Channel: Channel, Account: account, Recipient: user, Thread: r.Thread, MessageID: r.ID, User: user, UserName: user,
		},
		Mentioned: true, // no one else is in the conversation
	}
	if r.Type == "decision" {
		in.Decision = &adapter.Decision{GateID: r.GateID, Approve: *r.Approve}
	} else {
		in.Text = r.Content
	}
	return in
}

// answer returns the frame of a chunk.
func answer(c adapter.Chunk) response {
	r := response{
		Type: "message", Key: c.Key, Content: c.Text, Format: string(c.Format), Thread: c.To.Thread, InReplyTo: c.To.MessageID,
		Name: c.SenderName, Index: &c.Index, Count: c.Count,
	}
	if c.Ask != nil {
		r.Type, r.GateID, r.Tool, r.ExpiresMS = "ask", c.Ask.GateID, c.Ask.Tool, c.Ask.ExpiresMS
	}
	return r
}
