package examples

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/program"
)

const slackToken, slackSecret = "xoxb-test", "8f742231b10e8888abcd99yyyzzz85a5"

// workspace plays Slack: it takes chat.postMessage, and sends events to the program.
type workspace struct {
	server *httptest.Server
	posted chan url.Values
	events string // the address of the program's events
}

func newWorkspace(t *testing.T) *workspace {
	w := &workspace{posted: make(chan url.Values, 10)}
	w.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		if r.ParseForm() != nil || r.URL.Path != "/api/chat.postMessage" || r.PostForm.Get("token") != slackToken {
			_, _ = io.WriteString(rw, `{"ok":false,"error":"invalid_auth"}`)
			return
		}
		w.posted <- r.PostForm
		_, _ = io.WriteString(rw, `{"ok":true,"channel":"C1","ts":"1700000009.000100"}`)
	}))
	t.Cleanup(w.server.Close)
	return w
}

// send sends a request that is signed with a secret, and returns the answer.
func (w *workspace) send(t *testing.T, secret, body string, at time.Time) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.events, strings.NewReader(body))
	require.NoError(t, err)
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(mac, "v0:"+stamp+":"+body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Slack-Request-Timestamp", stamp)
	r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(raw)
}

// event is a request with a message, at ts, in a channel and a thread (empty: in none).
func event(kind, channel, thread, ts, text string) string {
	place := "channel"
	if channel[0] == 'D' {
		place = "im"
	}
	return fmt.Sprintf(`{"type":"event_callback","team_id":"T1","event_id":"Ev%s","event":{"type":%q,"channel":%q,"channel_type":%q,"user":"U1",`+
		`"text":%q,"ts":%q,"thread_ts":%q},"authorizations":[{"user_id":"UBOT","is_bot":true}]}`, ts, kind, channel, place, text, ts, thread)
}

// echo is a model that answers as Anthropic's API does.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	text := "I do not know."
	for _, word := range []string{"first", "second", "third"} { // the conversation has what was said before in it
		if bytes.Contains(body, []byte(word)) {
			text = "This is the " + word + "."
		}
	}
	program.Stream(w, `{"type":"text","text":""}`, `{"type":"text_delta","text":"`+text+`"}`, "end_turn")
}

func TestSlackAgentAnswersInTheThreadOfTheQuestion(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(api.Close)
	w := newWorkspace(t)
	ctx, stop := context.WithCancel(deadline(t))
	listen := program.Address(t)
	w.events = "http://" + listen + "/channels/slack/main"
	c := exec.CommandContext(ctx, filepath.Join(bin, "slack"))
	c.Env = []string{
		"LISTEN=" + listen, "SLACK_BOT_TOKEN=" + slackToken, "SLACK_SIGNING_SECRET=" + slackSecret, "SLACK_URL=" + w.server.URL + "/api",
		"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=" + api.URL,
	}
	agent := program.Serve(t, c, listen)
	errs := agent.Errs

	status, answer := w.send(t, slackSecret, `{"type":"url_verification","challenge":"c-1"}`, time.Now())
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "c-1", answer)

	for _, c := range []struct{ event, channel, thread, text string }{
		{event("app_mention", "C1", "", "1700000001.000100", "<@UBOT> The first?"), "C1", "1700000001.000100", "This is the first."},
		{event("app_mention", "C1", "1700000000.000700", "1700000002.000100", "<@UBOT> The second?"), "C1", "1700000000.000700", "This is the second."},
		{event("message", "D1", "", "1700000003.000100", "The third?"), "D1", "", "This is the third."},
	} {
		status, _ := w.send(t, "another secret", c.event, time.Now())
		require.Equal(t, http.StatusUnauthorized, status, "a bad signature")
		status, _ = w.send(t, slackSecret, c.event, time.Now().Add(-time.Hour))
		require.Equal(t, http.StatusUnauthorized, status, "an old signature")
		for range 2 { // Slack repeats an event whose answer it has not seen
			status, _ = w.send(t, slackSecret, c.event, time.Now())
			require.Equal(t, http.StatusOK, status, errs)
		}
		var posted url.Values
		select {
		case posted = <-w.posted:
		case <-time.After(time.Minute):
			require.Fail(t, "no answer", "%s %s", c.text, errs)
		}
		require.Equal(t, []string{c.channel, c.thread, c.text}, []string{posted.Get("channel"), posted.Get("thread_ts"), posted.Get("text")})
	}
	resp, err := http.Post("http://"+listen+"/invoke", "application/json", strings.NewReader(`{}`))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode, "the other doors are closed")

	agent.End(t, stop)
	require.Empty(t, w.posted, "each question has one answer")
	require.NotContains(t, errs.String(), slackToken)
	require.NotContains(t, errs.String(), slackSecret)
}
