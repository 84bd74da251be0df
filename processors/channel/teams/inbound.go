package teams

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
)

// receiveWithin is below the 15 s after which the Bot Framework gives up.
const receiveWithin = 12 * time.Second

// teamsChannel is the channel ID of Teams in activities. Keys must be endorsed for it.
const teamsChannel = "msteams"

// Handler returns the handler of activities, which is the messaging endpoint of the bot. It answers 200 when the receiver has taken
// the activity or nothing is to be done for it, 401 for a token that is missing or not valid (before it reads the body), 403 for an
// activity that its token is not for or whose service or tenant is not configured, 400 for a body that is no activity, and 503 if
// the receiver fails or the keys of the Bot Framework cannot be read.
func (a *Adapter) Handler(to adapter.Receiver) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), receiveWithin)
		defer cancel()
		proof, err := a.verify.token(ctx, r.Header)
		switch {
		case errors.Is(err, errKeys):
			a.door.Answer(w, r, platform.Later)
		case err != nil:
			a.door.Answer(w, r, platform.Forged)
		default:
			a.door.Serve(w, r, func(body []byte) platform.Reply { return a.activity(r.WithContext(ctx), proof, body, to) })
		}
	})
}

func (a *Adapter) activity(r *http.Request, p proof, body []byte, to adapter.Receiver) platform.Reply {
	var m activity
	if err := json.Unmarshal(body, &m); err != nil {
		return platform.Malformed
	}
	if !a.permitted(p, &m) {
		return platform.Reply{Status: http.StatusForbidden}
	}
	var taken platform.Reply
	if m.Type == "invoke" { // Teams shows an error without a response of its own
		taken = platform.JSON(invoked)
	}
	in, ok := m.inbound(a.config.Account)
	switch {
	case !ok:
		return taken
	case in.Origin.Check() != nil:
		return platform.Malformed
	}
	return a.door.Pass(r, 0, to, in, taken)
}

// invoked answers an invoke,
// https://learn.microsoft.com/microsoftteams/platform/task-modules-and-cards/cards/universal-actions-for-adaptive-cards/work-with-universal-actions-for-adaptive-cards.
const invoked = `{"statusCode":200,"type":"application/vnd.microsoft.activity.message","value":"OK"}`

// permitted reports whether a token is for the activity, and the activity for this account.
func (a *Adapter) permitted(p proof, m *activity) bool {
	_, allowed := a.allowed(m.ServiceURL)
	return allowed && m.ServiceURL == p.serviceURL && m.ChannelID == teamsChannel && p.endorses(m.ChannelID) &&
		(len(a.config.Tenants) == 0 || slices.Contains(a.config.Tenants, m.tenant()))
}
