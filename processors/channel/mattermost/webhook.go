package mattermost

import (
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/topics"
)

// outgoing is what an outgoing webhook posts (https://developers.mattermost.com/integrate/webhooks/outgoing/).
type outgoing struct {
	Token     string `json:"token"`
	Team      string `json:"team_id"`
	Channel   string `json:"channel_id"`
	Timestamp int64  `json:"timestamp"` // in milliseconds; in seconds in a form
	User      string `json:"user_id"`
	UserName  string `json:"user_name"`
	Post      string `json:"post_id"`
	Text      string `json:"text"`
	Trigger   string `json:"trigger_word"`
}

const (
	mediaJSON = "application/json"
	mediaForm = "application/x-www-form-urlencoded"
)

// Webhook returns the handler of an outgoing webhook, which passes messages to a receiver. A request without the token is answered
// with 401 and a body over 1 MiB with 413. If the receiver returns an error the answer is 503, and the message is lost if Mattermost
// does not repeat it: prefer Run. Mattermost does not say whether a bot wrote; only the bot's own messages are dropped. A message
// that begins with a trigger word of the webhook addresses the bot. Do not set threading for the account: the message may be in a
// thread already, in which Mattermost refuses to start another one, and its answer would be a dead delivery. It returns an error if
// Config.WebhookToken is empty.
func (a *Adapter) Webhook(to adapter.Receiver) (http.Handler, error) {
	if a.config.WebhookToken == "" {
		return nil, errors.New("mattermost: a webhook needs Config.WebhookToken")
	}
	door := platform.NewDoor(platform.DoorConfig{Media: []string{mediaJSON, mediaForm}, Logger: a.config.Logger})
	return door.Handler(func(r *http.Request, body []byte) platform.Reply {
		nothing := platform.JSON(`{}`) // no immediate answer
		switch o, err := readOutgoing(r.Header.Get("Content-Type"), body); {
		case err != nil:
			return platform.Malformed
		case !platform.EqualSecret(o.Token, a.config.WebhookToken):
			return platform.Forged
		case o.Post == "" || o.Channel == "" || o.User == "":
			return platform.Malformed
		case o.Text == "" || strings.EqualFold(o.UserName, a.config.Username):
			return nothing
		default:
			return door.Pass(r, 0, to, a.outgoing(o), nothing)
		}
	}), nil
}

func readOutgoing(contentType string, body []byte) (o outgoing, err error) {
	if media, _, _ := mime.ParseMediaType(contentType); media == mediaJSON {
		err = platform.Decode(body, &o)
		return o, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return o, err
	}
	seconds, _ := strconv.ParseInt(form.Get("timestamp"), 10, 64) // unknown if it is not a number
	return outgoing{
		Token: form.Get("token"), Team: form.Get("team_id"), Channel: form.Get("channel_id"), Timestamp: seconds * 1000,
		User: form.Get("user_id"), UserName: form.Get("user_name"), Post: form.Get("post_id"), Text: form.Get("text"),
		Trigger: form.Get("trigger_word"),
	}, nil
}

func (a *Adapter) outgoing(o outgoing) adapter.Inbound {
	return adapter.Inbound{
		Event: o.Post, Guild: o.Team, Mentioned: o.Trigger != "", Text: a.withoutMention(o.Text), At: platform.Time(o.Timestamp),
		Origin: topics.Origin{
			Channel: Channel, Account: a.config.Account, Recipient: o.Channel, MessageID: o.Post, User: o.User,
			UserName: platform.DisplayName(o.UserName), Group: true, // outgoing webhooks are for public channels
		},
	}
}

// withoutMention returns a text without a mention of the bot at its beginning.
func (a *Adapter) withoutMention(text string) string {
	end := len(a.config.Username) + 1
	if len(text) < end || !strings.EqualFold(text[:end], "@"+a.config.Username) || !platform.EndsMention(text[end:]) {
		return text
	}
	return platform.TrimMention(text[end:])
}
