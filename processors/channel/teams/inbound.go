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
		if err != nil {
			if errors.Is(err, errKeys) {
				platform.Refuse(w, http.StatusServiceUnavailable)
				return
			}
			a.door.Unauthorized(w, r)
			return
		}
		body, ok := a.door.Read(w, r)
		if !ok {
			return
		}
		var m activity
		if err := json.Unmarshal(body, &m); err != nil {
			platform.Refuse(w, http.StatusBadRequest)
			return
		}
		if !a.permitted(proof, &m) {
			platform.Refuse(w, http.StatusForbidden)
			return
		}
		in, ok := m.inbound(a.config.Account)
		if !ok {
			acknowledge(w, &m)
			return
		}
		if in.Origin.Check() != nil {
			platform.Refuse(w, http.StatusBadRequest)
			return
		}
		if err := a.door.Submit(ctx, to, in); err != nil {
			platform.Refuse(w, http.StatusServiceUnavailable)
			return
		}
		acknowledge(w, &m)
	})
}

// permitted reports whether a token is for the activity, and the activity for this account.
func (a *Adapter) permitted(p proof, m *activity) bool {
	_, allowed := a.allowed(m.ServiceURL)
	return allowed && m.ServiceURL == p.serviceURL && m.ChannelID == teamsChannel && p.endorses(m.ChannelID) &&
		(len(a.config.Tenants) == 0 || slices.Contains(a.config.Tenants, m.tenant()))
}

// acknowledge answers 200. An invoke wants a response of its own,
// https://learn.microsoft.com/microsoftteams/platform/task-modules-and-cards/cards/universal-actions-for-adaptive-cards/work-with-universal-actions-for-adaptive-cards.
func acknowledge(w http.ResponseWriter, m *activity) {
	if m.Type == "invoke" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"statusCode":200,"type":"application/vnd.microsoft.activity.message","value":"OK"}`)) // Teams shows an error otherwise
	}
}
