package mattermost

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/topics"
)

// pressed is the context of a button. Mattermost sends it back when the button is pressed and does not show it to clients.
type pressed struct {
	Gate    string `json:"gate"`
	Approve bool   `json:"approve"`
	Channel string `json:"channel"`
	Thread  string `json:"thread"`
	Group   bool   `json:"group"`
	// Signature proves that the adapter made the context: Mattermost does not sign its requests.
	Signature string `json:"signature"`
}

func (a *Adapter) button(id, name, style string, approve bool, c adapter.Chunk) action {
	p := pressed{Gate: c.Ask.GateID, Approve: approve, Channel: c.To.Recipient, Thread: c.To.Thread, Group: c.To.Group}
	p.Signature = a.sign(p)
	return action{ID: id, Type: "button", Name: name, Style: style, Integration: integration{URL: a.config.CallbackURL, Context: p}}
}

// sign returns the HMAC-SHA256 of a context's other members and the account.
func (a *Adapter) sign(p pressed) string {
	h := hmac.New(sha256.New, []byte(a.config.CallbackSecret))
	var length [8]byte
	for _, part := range []string{
		"mattermost button", a.config.Account, p.Gate, strconv.FormatBool(p.Approve), p.Channel, p.Thread, strconv.FormatBool(p.Group),
	} {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// actionRequest is what Mattermost posts when a button is pressed
// (https://developers.mattermost.com/integrate/plugins/interactive-messages/).
type actionRequest struct {
	User     string  `json:"user_id"`
	UserName string  `json:"user_name"`
	Channel  string  `json:"channel_id"`
	Team     string  `json:"team_id"`
	Post     string  `json:"post_id"`
	Context  pressed `json:"context"`
}

// Actions returns the handler at Config.CallbackURL, which passes pressed buttons to a receiver. A request whose context was not
// signed by an adapter of the account with the same secret, or is of another channel, is answered with 401. If the receiver returns
// an error the answer is 503: the person sees that it failed and can press again. It returns an error if CallbackURL is empty.
func (a *Adapter) Actions(to adapter.Receiver) (http.Handler, error) {
	if a.config.CallbackURL == "" {
		return nil, errors.New("mattermost: buttons need Config.CallbackURL")
	}
	door := platform.NewDoor(platform.DoorConfig{Logger: a.config.Logger})
	return door.Handler(func(r *http.Request, body []byte) platform.Reply {
		var q actionRequest
		if err := platform.Decode(body, &q); err != nil {
			return platform.Malformed
		}
		if p := q.Context; !platform.EqualSecret(p.Signature, a.sign(p)) || p.Gate == "" || p.Channel != q.Channel || q.User == "" {
			return platform.Forged
		}
		return door.Pass(r, 0, to, adapter.Inbound{
			// Mattermost does not number presses. The same press again is the same decision.
			Event:     "press-" + q.Post + "-" + q.User + "-" + q.Context.Gate + "-" + strconv.FormatBool(q.Context.Approve),
			Mentioned: true, Guild: q.Team, Decision: &adapter.Decision{GateID: q.Context.Gate, Approve: q.Context.Approve},
			Origin: topics.Origin{
				Channel: Channel, Account: a.config.Account, Recipient: q.Channel, Thread: q.Context.Thread, MessageID: q.Post,
				User: q.User, UserName: platform.DisplayName(q.UserName), Group: q.Context.Group,
			},
		}, platform.JSON(`{}`))
	}), nil
}
