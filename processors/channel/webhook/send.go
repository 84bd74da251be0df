package webhook

import (
	"bytes"
	"context"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/processors/channel/text"
)

// outbound is the body of a request to the URL.
type outbound struct {
	Type       string         `json:"type"`
	DeliveryID string         `json:"delivery_id"`
	Key        string         `json:"key"`
	Account    string         `json:"account"`
	Recipient  string         `json:"recipient"`
	ThreadID   string         `json:"thread_id,omitempty"`
	ReplyTo    string         `json:"reply_to,omitempty"`
	UserID     string         `json:"user_id,omitempty"`
	IsGroup    bool           `json:"is_group,omitzero"`
	Text       string         `json:"text"`
	Format     text.Format    `json:"format"`
	Chunk      part           `json:"chunk"`
	Ask        *ask           `json:"ask,omitempty"`
	SenderName string         `json:"sender_name,omitempty"`
	Metadata   jsontext.Value `json:"metadata,omitempty"`
}

type part struct {
	Index int `json:"index"`
	Count int `json:"count"`
}

type ask struct {
	GateID    string `json:"gate_id"`
	Tool      string `json:"tool"`
	ExpiresMS int64  `json:"expires_ms"`
}

// Send implements adapter.Adapter.
func (a *Adapter) Send(ctx context.Context, c adapter.Chunk) (adapter.Sent, error) {
	body, err := bodyOf(c, a.config.Account)
	if err != nil {
		return adapter.Sent{}, &adapter.Failure{Reason: "text cannot be encoded", Final: true}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.config.URL, bytes.NewReader(body))
	if err != nil {
		return adapter.Sent{}, &adapter.Failure{Reason: "request cannot be made", Final: true}
	}
	id := headerKey(c.Key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", id)
	if err := a.sign.sign(r.Header, id, body, a.now()); err != nil {
		return adapter.Sent{}, &adapter.Failure{Reason: "request cannot be signed", Final: true}
	}
	answer, err := platform.Exchange(a.client, r)
	if answer.Status == 0 { // else the status is the result
		return adapter.Sent{}, err
	}
	if f := platform.StatusFailure(answer.Status, answer.Header, a.now()); f != nil {
		return adapter.Sent{}, f
	}
	sent := adapter.Sent{ID: answer.ID()} // an ID of the receiver is optional
	if len(sent.ID) > maxID {
		sent.ID = ""
	}
	return sent, nil
}

func bodyOf(c adapter.Chunk, account string) ([]byte, error) {
	o := outbound{
		Type: "message", DeliveryID: c.Key, Key: c.Key, Account: account,
		Recipient: c.To.Recipient, ThreadID: c.To.Thread, ReplyTo: c.To.MessageID, UserID: c.To.User, IsGroup: c.To.Group,
		Text: c.Text, Format: c.Format, Chunk: part{Index: c.Index, Count: c.Count}, SenderName: c.SenderName,
		Metadata: jsontext.Value(c.To.Adapter),
	}
	if i := strings.LastIndexByte(c.Key, '/'); i > 0 {
		o.DeliveryID = c.Key[:i]
	}
	if c.Ask != nil {
		o.Ask = &ask{GateID: c.Ask.GateID, Tool: c.Ask.Tool, ExpiresMS: c.Ask.ExpiresMS}
	}
	return json.Marshal(o, jsontext.AllowInvalidUTF8(true))
}

// headerKey is a chunk's key as the value of a header: the key itself, or the hash of one that is too long or not printable ASCII.
func headerKey(key string) string {
	if len(key) <= maxID && platform.HeaderValue(key) {
		return key
	}
	return platform.HashKey(key)
}
