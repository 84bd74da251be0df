package webhook

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/topics"
)

// receiveWithin is how long a sender waits for its response. It can send the message again after that.
const receiveWithin = 25 * time.Second

// message is the body of a request to the handler. Other members are ignored.
type message struct {
	Message    string         `json:"message"`
	SenderID   string         `json:"sender_id"`
	SenderName string         `json:"sender_name"`
	Recipient  string         `json:"recipient"`
	Room       string         `json:"room"`
	ThreadID   string         `json:"thread_id"`
	IsGroup    bool           `json:"is_group"`
	Mentioned  bool           `json:"mentioned"`
	Roles      []string       `json:"roles"`
	Guild      string         `json:"guild"`
	MessageID  string         `json:"message_id"`
	Metadata   jsontext.Value `json:"metadata"`
	Decision   *decision      `json:"decision"`
}

type decision struct {
	GateID  string `json:"gate_id"`
	Approve *bool  `json:"approve"`
}

// Handler returns the handler of requests to the agent. It answers 204 when the receiver has taken the event, 401 for a missing or
// wrong signature or an old timestamp, 400 for a body that is no message, 405, 408, 413, 415 and 429 for other requests, and 503 if the
// receiver fails or too many requests are in progress: the sender tries again. Mount it where bodies are passed unchanged.
func (a *Adapter) Handler(to adapter.Receiver) http.Handler {
	return a.door.Handler(func(r *http.Request, body []byte) platform.Reply {
		if !a.verify.valid(r.Header, body, a.now()) {
			return platform.Forged
		}
		in, ok := a.inbound(r.Header, body)
		if !ok {
			return platform.Malformed
		}
		return a.door.Pass(r, receiveWithin, to, in, platform.Reply{Status: http.StatusNoContent})
	})
}

// inbound is the event of a verified request.
func (a *Adapter) inbound(h http.Header, body []byte) (in adapter.Inbound, ok bool) {
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return in, false
	}
	if string(m.Metadata) == "null" {
		m.Metadata = nil
	}
	if m.Metadata != nil && m.Metadata.Kind() != '{' {
		return in, false
	}
	in = adapter.Inbound{
		Event: h.Get(standardwebhooks.HeaderWebhookID),
		Origin: topics.Origin{
			Channel: Channel, Account: a.config.Account, Recipient: cmp.Or(m.Recipient, m.Room, m.SenderID), Thread: m.ThreadID, MessageID: m.MessageID,
			User: m.SenderID, UserName: platform.DisplayName(m.SenderName), Group: m.IsGroup, Adapter: topics.Raw(m.Metadata),
		},
		Text: m.Message, Mentioned: m.Mentioned, Guild: m.Guild, Roles: m.Roles,
	}
	if m.Decision != nil {
		if m.Decision.GateID == "" || len(m.Decision.GateID) > maxID || m.Decision.Approve == nil || m.Message != "" {
			return in, false
		}
		in.Decision = &adapter.Decision{GateID: m.Decision.GateID, Approve: *m.Decision.Approve}
	} else if strings.TrimSpace(m.Message) == "" {
		return in, false
	}
	return in, in.Origin.Check() == nil
}
