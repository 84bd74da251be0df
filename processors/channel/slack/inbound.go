package slack

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
)

const (
	mediaJSON = "application/json"
	mediaForm = "application/x-www-form-urlencoded"

	// tolerance is how far the timestamp of a request may be from this host's clock, in both directions.
	tolerance = 5 * time.Minute
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
		body, ok := a.door.Read(w, r)
		if !ok {
			return
		}
		if !a.signed(r.Header, body) {
			a.door.Unauthorized(w, r)
			return
		}
		if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media == mediaForm {
			a.interaction(w, r, to, body)
			return
		}
		a.event(w, r, to, body)
	})
}

// signed reports whether a request has one valid signature and a recent timestamp.
func (a *Adapter) signed(h http.Header, body []byte) bool {
	const version = "v0"
	at, signature := h.Values("X-Slack-Request-Timestamp"), h.Values("X-Slack-Signature")
	if len(at) != 1 || len(signature) != 1 {
		return false
	}
	seconds, err := strconv.ParseInt(at[0], 10, 64)
	now := a.now()
	if err != nil || seconds < now.Add(-tolerance).Unix() || seconds > now.Add(tolerance).Unix() {
		return false
	}
	for _, secret := range a.config.SigningSecrets {
		mac := hmac.New(sha256.New, []byte(secret))
		_, _ = mac.Write([]byte(version + ":" + at[0] + ":")) // a hash returns no error
		_, _ = mac.Write(body)
		if hmac.Equal([]byte(version+"="+hex.EncodeToString(mac.Sum(nil))), []byte(signature[0])) {
			return true
		}
	}
	return false
}

func (a *Adapter) event(w http.ResponseWriter, r *http.Request, to adapter.Receiver, body []byte) {
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil {
		platform.Refuse(w, http.StatusBadRequest)
		return
	}
	switch e.Type {
	case "url_verification":
		if e.Challenge == "" || len(e.Challenge) > maxChallenge {
			platform.Refuse(w, http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write([]byte(e.Challenge)) // Slack verifies the URL again if this fails
	case "event_callback":
		in, ok := e.inbound(a.config)
		if !ok {
			return // answered 200: an event that is not for the agent
		}
		a.submit(w, r, to, in)
	}
}

func (a *Adapter) interaction(w http.ResponseWriter, r *http.Request, to adapter.Receiver, body []byte) {
	form, err := url.ParseQuery(string(body))
	if err != nil || len(form["payload"]) != 1 {
		platform.Refuse(w, http.StatusBadRequest)
		return
	}
	var i interaction
	if err := json.Unmarshal([]byte(form.Get("payload")), &i); err != nil {
		platform.Refuse(w, http.StatusBadRequest)
		return
	}
	if in, ok := i.inbound(a.config); ok {
		a.submit(w, r, to, in)
	}
}

func (a *Adapter) submit(w http.ResponseWriter, r *http.Request, to adapter.Receiver, in adapter.Inbound) {
	if in.Origin.Check() != nil {
		platform.Refuse(w, http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), receiveWithin)
	defer cancel()
	once := adapter.ReceiverFunc(func(ctx context.Context, in adapter.Inbound) error {
		if a.passed.has(in) {
			return nil
		}
		if err := to.Receive(ctx, in); err != nil {
			return err
		}
		a.passed.add(in)
		return nil
	})
	if err := a.door.Submit(ctx, once, in); err != nil {
		platform.Refuse(w, http.StatusServiceUnavailable)
	}
}
