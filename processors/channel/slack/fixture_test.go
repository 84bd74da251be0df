package slack_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/processors/channel/slack"
)

const (
	signingSecret = "8f742231b10e8888abcd99yyyzzz85a5" // of the example in Slack's documentation
	token         = "xoxb-s3cret"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func config(url string) slack.Config {
	return slack.Config{
		Account: "main", Token: token, SigningSecrets: []string{"another-signing-secret", signingSecret}, URL: url, TeamID: "T1",
		AppID: "A1", Clock: clock.NewFake(start),
	}
}

func open(t *testing.T, c slack.Config) *slack.Adapter { return platformtest.Open(t, slack.New, c) }

// request is a request as Slack signs it.
func request(media, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", media)
	at := strconv.FormatInt(start.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(signingSecret))
	_, _ = fmt.Fprintf(mac, "v0:%s:%s", at, body)
	r.Header.Set("X-Slack-Request-Timestamp", at)
	r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	return r
}

func serve(a *slack.Adapter, to adapter.Receiver, r *http.Request) *httptest.ResponseRecorder {
	return platformtest.Serve(a.Handler(to), r)
}

// event is a request of the Events API.
func event(inner string) string {
	return `{"token":"x","team_id":"T1","api_app_id":"A1","type":"event_callback","event_id":"Ev1","event_time":1,
		"authorizations":[{"enterprise_id":null,"team_id":"T1","user_id":"UBOT","is_bot":true}],"event":` + inner + `}`
}

// post sends an event and returns what the receiver got.
func post(t *testing.T, a *slack.Adapter, inner string) []adapter.Inbound {
	t.Helper()
	to := &platformtest.Inbox{}
	require.Equal(t, 200, serve(a, to, request("application/json", event(inner))).Code)
	return to.Tried
}

// platform is a loopback chat.postMessage that refuses what Slack refuses.
type platform struct {
	forms  []url.Values
	answer func(w http.ResponseWriter, n int)
}

func (p *platform) start(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply := func(text string) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(text))
		}
		media := r.Header.Get("Content-Type")
		switch {
		case r.Method != http.MethodPost || r.URL.Path != "/api/chat.postMessage":
			reply(`{"ok":false,"error":"unknown_method"}`)
			return
		case r.ParseForm() != nil || media != "application/x-www-form-urlencoded":
			reply(`{"ok":false,"error":"invalid_post_type"}`)
			return
		case r.Header.Get("Authorization") != "Bearer "+token && r.PostForm.Get("token") != token:
			reply(`{"ok":false,"error":"invalid_auth"}`)
			return
		}
		p.forms = append(p.forms, r.PostForm)
		if p.answer != nil {
			p.answer(w, len(p.forms))
			return
		}
		reply(fmt.Sprintf(`{"ok":true,"channel":"C1","ts":"1700000000.%06d","message":{"text":"x"}}`, len(p.forms)))
	}))
	t.Cleanup(server.Close)
	return server.URL + "/api/"
}
