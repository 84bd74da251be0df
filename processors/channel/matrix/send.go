package matrix

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
)

// roomMessage is the content of an event m.room.message (https://spec.matrix.org/latest/client-server-api/#mroommessage).
type roomMessage struct {
	Type string `json:"msgtype"`
	Body string `json:"body"`
	// Mentions is empty: without it, clients would look for names in the body.
	Mentions struct{}  `json:"m.mentions"`
	Relation *relation `json:"m.relates_to,omitzero"`
}

// relation puts a message into a thread (https://spec.matrix.org/latest/client-server-api/#threading). Clients without threads show
// it as a reply to the latest message of the thread.
type relation struct {
	Type        string  `json:"rel_type"`
	Event       string  `json:"event_id"`
	FallingBack bool    `json:"is_falling_back"`
	Reply       eventID `json:"m.in_reply_to"`
}

type eventID struct {
	ID string `json:"event_id"`
}

// Send implements adapter.Adapter. A room that does not exist or that the bot must not write to is a final failure. Rooms have no
// aliases here: the recipient is a room ID.
func (a *Adapter) Send(ctx context.Context, c adapter.Chunk) (adapter.Sent, error) {
	if !strings.HasPrefix(c.To.Recipient, "!") {
		return adapter.Sent{}, &adapter.Failure{Reason: "recipient is not a room ID", Final: true}
	}
	m := roomMessage{Type: "m.text", Body: c.Text}
	if thread := c.To.Thread; thread != "" {
		latest := cmp.Or(c.To.MessageID, thread)
		if n := len(c.Previous); n > 0 {
			latest = cmp.Or(c.Previous[n-1].ID, latest)
		}
		m.Relation = &relation{Type: "m.thread", Event: thread, FallingBack: true, Reply: eventID{latest}}
	}
	path := "/rooms/" + url.PathEscape(c.To.Recipient) + "/send/m.room.message/" + transactionID(c.Key)
	answer, err := a.call(ctx, a.client, http.MethodPut, path, m)
	if err != nil {
		return adapter.Sent{}, err
	}
	var sent eventID
	_ = platform.Decode(answer.Body, &sent) // it was sent, also if the response cannot be read
	if len(sent.ID) > maxEventID {
		sent.ID = ""
	}
	return adapter.Sent{ID: sent.ID}, nil
}

// maxEventID is the longest ID of an event, in bytes.
const maxEventID = 255

// transactionID returns an ID that differs for different chunks: the homeserver sends no second message with it
// (https://spec.matrix.org/latest/client-server-api/#transaction-identifiers).
func transactionID(key string) string {
	return "turntable-" + platform.HashKey(key)[:32]
}

// failure returns the failure of an answer, nil if it succeeded
// (https://spec.matrix.org/latest/client-server-api/#standard-error-response).
func (a *Adapter) failure(answer platform.Answer) *adapter.Failure {
	f := platform.StatusFailure(answer.Status, answer.Header, a.config.Clock.Now())
	if f == nil {
		return nil
	}
	var refused struct {
		Code  string `json:"errcode"`
		Retry int64  `json:"retry_after_ms"`
	}
	if _ = platform.Decode(answer.Body, &refused); !strings.HasPrefix(refused.Code, "M_") {
		refused.Code = ""
	}
	platform.Explain(f, refused.Code)
	switch refused.Code {
	case "M_LIMIT_EXCEEDED":
		f.Final = false
		if f.RetryAfter == 0 && refused.Retry > 0 { // the header is the newer way
			f.RetryAfter = platform.Wait(refused.Retry, time.Millisecond)
		}
	case "M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED":
		f.Final = false // the message is fine, the operator can repair the token
	}
	return f
}
