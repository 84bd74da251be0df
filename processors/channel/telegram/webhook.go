package telegram

import (
	"errors"
	"net/http"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
)

// secretHeader has the secret_token of setWebhook (https://core.telegram.org/bots/api#setwebhook).
const secretHeader = "X-Telegram-Bot-Api-Secret-Token"

// Handler returns the handler of the bot's webhook, which passes updates to a receiver. Register its URL with setWebhook, with
// Config.Secret as secret_token, allowed_updates message and callback_query, and max_connections 1 if the order of messages
// that Telegram sends at almost the same time matters: events of one conversation are passed on one after the other, in the order
// of their arrival. A request without the secret is answered with 401
// before its body is read, a body over 1 MiB with 413, and one that is not an update with 400. An update that cannot be read is
// skipped. If the receiver returns an error the answer is 503, and
// Telegram sends the update again. It returns an error if Config.Secret is empty.
func (a *Adapter) Handler(to adapter.Receiver) (http.Handler, error) {
	if a.config.Secret == "" {
		return nil, errors.New("telegram: a webhook needs Config.Secret")
	}
	door := platform.NewDoor(platform.DoorConfig{Logger: a.config.Logger})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !platform.EqualSecret(r.Header.Get(secretHeader), a.config.Secret) {
			door.Unauthorized(w, r)
			return
		}
		door.Serve(w, r, func(body []byte) platform.Reply {
			var u update
			if err := platform.Decode(body, &u); err != nil || u.ID <= 0 {
				if a.unreadable(body) <= 0 {
					return platform.Malformed
				}
				return platform.Reply{}
			}
			in, ok := a.inbound(u)
			if !ok {
				return platform.Reply{}
			}
			reply := door.Pass(r, 0, to, in, platform.Reply{})
			if reply != platform.Later && u.Callback != nil {
				a.answered(r.Context(), u.Callback.ID)
			}
			return reply
		})
	}), nil
}
