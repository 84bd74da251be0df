package slack

import (
	"context"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
)

const (
	mediaJSON = "application/json"
	mediaForm = "application/x-www-form-urlencoded"

	// receiveWithin leaves half a second of the 3 s after which Slack sends an event again.
	receiveWithin = 2500 * time.Millisecond
	maxChallenge  = 1 << 10
)

// Handler returns the handler of Slack's requests, for events and for interactivity. It verifies them as in
// https://docs.slack.dev/authentication/verifying-requests-from-slack and answers within 3 s: 200 when the receiver has taken the
// event or nothing is to be done for it, 401 for a wrong signature or an old timestamp, 400 for a body that is not understood,
// and 503 if the receiver fails or is late: Slack sends events again. Mount it where bodies are passed unchanged.
func (a *Adapter) Handler(to adapter.Receiver) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.door.Serve(w, r, func(body []byte) platform.Reply {
			media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
			switch {
			case !a.signed(r.Header, body):
				return platform.Forged
			case media == mediaForm:
				return a.interaction(r, to, body)
			}
			return a.event(w, r, to, body)
		})
	})
}

func (a *Adapter) event(w http.ResponseWriter, r *http.Request, to adapter.Receiver, body []byte) platform.Reply {
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil {
		return platform.Malformed
	}
	switch e.Type {
	case "url_verification":
		if e.Challenge == "" || len(e.Challenge) > maxChallenge {
			return platform.Malformed
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		return platform.Reply{Media: "text/plain; charset=utf-8", Body: e.Challenge}
	case "event_callback":
		if in, ok := e.inbound(a.config); ok {
			return a.submit(r, to, in)
		}
	}
	return platform.Reply{} // an event that is not for the agent
}

func (a *Adapter) interaction(r *http.Request, to adapter.Receiver, body []byte) platform.Reply {
	form, err := url.ParseQuery(string(body))
	if err != nil || len(form["payload"]) != 1 {
		return platform.Malformed
	}
	var i interaction
	if err := json.Unmarshal([]byte(form.Get("payload")), &i); err != nil {
		return platform.Malformed
	}
	if in, ok := i.inbound(a.config); ok {
		return a.submit(r, to, in)
	}
	return platform.Reply{}
}

// maxPassed is how many of the latest events that the receiver has taken are remembered, so that the second event of a text, or a
// retry, does not count against the rate limit of the person. It is a shortcut: the receiver recognises repeats itself.
const maxPassed = 4096

// passed is an event that the receiver has taken. A message that was passed without a mention is passed again with one, because a
// policy may have dropped it.
type passed struct {
	event     string
	mentioned bool
}

func (a *Adapter) submit(r *http.Request, to adapter.Receiver, in adapter.Inbound) platform.Reply {
	if in.Origin.Check() != nil {
		return platform.Malformed
	}
	once := adapter.ReceiverFunc(func(ctx context.Context, in adapter.Inbound) error {
		if a.passed.Contains(passed{in.Event, true}) || a.passed.Contains(passed{in.Event, in.Mentioned}) {
			return nil
		}
		err := to.Receive(ctx, in)
		if err == nil {
			a.passed.Add(passed{in.Event, in.Mentioned}, struct{}{})
		}
		return err
	})
	return a.door.Pass(r, receiveWithin, once, in, platform.Reply{})
}
