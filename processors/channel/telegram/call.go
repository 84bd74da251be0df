package telegram

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
)

// response is what every method returns (https://core.telegram.org/bots/api#making-requests).
type response struct {
	OK          bool           `json:"ok"`
	Result      jsontext.Value `json:"result"`
	ErrorCode   int            `json:"error_code"`
	Description string         `json:"description"`
	Parameters  struct {
		RetryAfter int64 `json:"retry_after"`
		MigrateTo  int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

// call calls a method and returns its result. Its error is always an *adapter.Failure.
func (a *Adapter) call(ctx context.Context, client *http.Client, method string, params any) (jsontext.Value, error) {
	answer, err := platform.Do(ctx, client, http.MethodPost, a.method+method, "", params)
	if err != nil {
		return nil, err
	}
	var r response
	decoded := platform.Decode(answer.Body, &r) == nil
	if decoded && r.OK && answer.Status == http.StatusOK {
		return r.Result, nil
	}
	code := answer.Status
	if decoded && r.ErrorCode != 0 {
		code = r.ErrorCode
	}
	f := platform.StatusFailure(code, answer.Header, a.config.Clock.Now())
	switch {
	case f == nil:
		return nil, &adapter.Failure{Reason: "response cannot be read", Status: code}
	case !decoded:
		// Not Telegram's: a proxy, or a wrong address. The operator can repair that.
		f.Final = false
	case code == http.StatusNotFound:
		// The Bot API answers 404 for a token that it does not know.
		f.Final, f.Reason = false, "unknown token"
	default:
		f.Reason = reason(f.Reason, r)
		if wait := r.Parameters.RetryAfter; !f.Final && wait > 0 {
			f.RetryAfter = platform.Wait(wait, time.Second)
		}
	}
	return nil, f
}

// refusals are the descriptions of errors that are passed on as reasons. Telegram documents no list, and some descriptions
// quote the text of the message, so others are not.
var refusals = []string{
	"chat not found", "user not found", "bot was blocked by the user", "bot was kicked", "bot is not a member", "user is deactivated",
	"bot can't initiate conversation", "bot can't send messages to bots", "not enough rights", "have no rights to send a message",
	"need administrator rights", "message thread not found", "TOPIC_CLOSED", "TOPIC_DELETED", "CHAT_WRITE_FORBIDDEN",
	"PEER_ID_INVALID", "message is too long", "message text is empty", "can't parse entities", "message to be replied not found",
}

func reason(otherwise string, r response) string {
	if r.Parameters.MigrateTo != 0 {
		return "group has become a supergroup" // with another ID
	}
	for _, known := range refusals {
		if strings.Contains(strings.ToLower(r.Description), strings.ToLower(known)) {
			return known
		}
	}
	return otherwise
}

// Check implements adapter.Checker with getMe (https://core.telegram.org/bots/api#getme).
func (a *Adapter) Check(ctx context.Context) error {
	_, err := a.call(ctx, a.client, "getMe", nil)
	return err
}
