package mattermost

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/topics"
)

func serve(h http.Handler, media, body string) int {
	r := httptest.NewRequest(http.MethodPost, "/mattermost", strings.NewReader(body))
	r.Header.Set("Content-Type", media)
	return platformtest.Serve(h, r).Code
}

const hook = `{"token":"hook-s3cret-token","team_id":"team1","channel_id":"chan1","timestamp":1700000000000,"user_id":"ann1","user_name":"ann","post_id":"p1","text":"@Turntable: hello","trigger_word":"@turntable","file_ids":""}`

func TestOutgoingWebhook(t *testing.T) {
	a, _ := newAdapter(t, "https://chat.example", func(c *Config) { c.WebhookToken = "" })
	_, err := a.Webhook(platformtest.NewInbox(0))
	require.ErrorContains(t, err, "Config.WebhookToken")

	a, _ = newAdapter(t, "https://chat.example")
	i := platformtest.NewInbox(0)
	h, err := a.Webhook(i)
	require.NoError(t, err)
	form := url.Values{
		"token": {"hook-s3cret-token"}, "team_id": {"team1"}, "channel_id": {"chan1"}, "timestamp": {"1700000000"}, "user_id": {"ann1"},
		"user_name": {"ann"}, "post_id": {"p1"}, "text": {"@Turntable: hello"}, "trigger_word": {"@turntable"},
	}.Encode()
	require.Equal(t, 200, serve(h, "application/json; charset=utf-8", hook))
	require.Equal(t, 200, serve(h, mediaForm, form))
	require.Equal(t, adapter.Inbound{
		Event: "p1", Guild: "team1", Text: "hello", Mentioned: true, At: time.Unix(1700000000, 0).UTC(),
		Origin: topics.Origin{Channel: "mattermost", Account: "main", Recipient: "chan1", MessageID: "p1", User: "ann1", UserName: "ann", Group: true},
	}, i.All()[0])
	require.Equal(t, i.All()[0], i.All()[1])
}

func TestHostileWebhooksAreRefused(t *testing.T) {
	a, _ := newAdapter(t, "https://chat.example")
	i := platformtest.NewInbox(0)
	h, err := a.Webhook(i)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		media, body string
		want        int
	}{
		"wrong token": {mediaJSON, strings.Replace(hook, "hook-s3cret-token", "x", 1), 401},
		"no token":    {mediaForm, "post_id=p1&channel_id=c&user_id=u&text=x", 401},
		"no post":     {mediaJSON, strings.Replace(hook, `"p1"`, `""`, 1), 400},
		"not JSON":    {mediaJSON, `{`, 400},
		"not a form":  {mediaForm, "%zz", 400},
		"huge":        {mediaJSON, strings.Repeat(" ", 1<<20) + hook, 413},
		"other type":  {"text/plain", hook, 415},
		"the bot":     {mediaJSON, strings.Replace(hook, `"ann"`, `"Turntable"`, 1), 200},
		"empty":       {mediaJSON, strings.Replace(hook, `"@Turntable: hello"`, `""`, 1), 200},
	} {
		require.Equal(t, c.want, serve(h, c.media, c.body), name)
	}
	require.Empty(t, i.All())
	failing, err := a.Webhook(platformtest.NewInbox(1))
	require.NoError(t, err)
	require.Equal(t, 503, serve(failing, mediaJSON, hook))
}

// press sends a request for approval and returns what Mattermost posts when a button of it is pressed.
func press(t *testing.T, a *Adapter, v *vendor, button int) map[string]any {
	t.Helper()
	_, err := a.Send(t.Context(), chunk(func(c *adapter.Chunk) { c.Ask = &adapter.Ask{GateID: "g-1", Tool: "pay"} }))
	require.NoError(t, err)
	posts := v.Got()
	attachments := posts[len(posts)-1]["props"].(map[string]any)["attachments"].([]any)
	action := attachments[0].(map[string]any)["actions"].([]any)[button].(map[string]any)
	require.Equal(t, "button", action["type"])
	integration := action["integration"].(map[string]any)
	require.Equal(t, "https://bridge.example/mattermost", integration["url"])
	return map[string]any{
		"user_id": "ann1", "user_name": "ann", "channel_id": "chan1", "team_id": "team1", "post_id": "post1", "trigger_id": "x",
		"type": "button", "context": integration["context"],
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "s3cret")
	return string(raw)
}

func TestPressedButtonIsADecision(t *testing.T) {
	v := newVendor(t)
	a, _ := newAdapter(t, v.URL)
	i := platformtest.NewInbox(0)
	h, err := a.Actions(i)
	require.NoError(t, err)
	require.Equal(t, 200, serve(h, mediaJSON, encode(t, press(t, a, v, 0))))
	require.Equal(t, 200, serve(h, mediaJSON, encode(t, press(t, a, v, 1))))
	require.Equal(t, adapter.Inbound{
		Event: "press-post1-ann1-g-1-true", Mentioned: true, Guild: "team1", Decision: &adapter.Decision{GateID: "g-1", Approve: true},
		Origin: topics.Origin{Channel: "mattermost", Account: "main", Recipient: "chan1", Thread: "root1", MessageID: "post1", User: "ann1", UserName: "ann", Group: true},
	}, i.All()[0])
	require.Equal(t, &adapter.Decision{GateID: "g-1"}, i.All()[1].Decision)
	require.True(t, chunk().To.SamePlace(i.All()[0].Origin))
	failing, err := a.Actions(platformtest.NewInbox(1))
	require.NoError(t, err)
	require.Equal(t, 503, serve(failing, mediaJSON, encode(t, press(t, a, v, 0))))
}

func TestForgedPressIsRefused(t *testing.T) {
	v := newVendor(t)
	a, _ := newAdapter(t, v.URL)
	i := platformtest.NewInbox(0)
	h, err := a.Actions(i)
	require.NoError(t, err)
	for name, forge := range map[string]func(q, c map[string]any){
		"gate":      func(_, c map[string]any) { c["gate"] = "g-2" },
		"approve":   func(_, c map[string]any) { c["approve"] = true },
		"thread":    func(_, c map[string]any) { c["thread"] = "" },
		"channel":   func(q, _ map[string]any) { q["channel_id"] = "chan2" },
		"moved":     func(q, c map[string]any) { q["channel_id"], c["channel"] = "chan2", "chan2" },
		"signature": func(_, c map[string]any) { c["signature"] = "" },
		"context":   func(q, _ map[string]any) { delete(q, "context") },
		"user":      func(q, _ map[string]any) { q["user_id"] = "" },
	} {
		q := press(t, a, v, 1)
		forge(q, q["context"].(map[string]any))
		require.Equal(t, 401, serve(h, mediaJSON, encode(t, q)), name)
	}
	other, _ := newAdapter(t, v.URL, func(c *Config) { c.Account = "second" })
	require.Equal(t, 401, serve(h, mediaJSON, encode(t, press(t, other, v, 0))), "a button of another account")
	require.Equal(t, 400, serve(h, mediaJSON, `[`))
	require.Empty(t, i.All())
	off, _ := newAdapter(t, v.URL, func(c *Config) { c.CallbackURL = "" })
	_, err = off.Actions(i)
	require.ErrorContains(t, err, "Config.CallbackURL")
	_, err = off.Send(t.Context(), chunk(func(c *adapter.Chunk) { c.Ask = &adapter.Ask{GateID: "g-1"} }))
	require.NoError(t, err)
	require.NotContains(t, v.Got()[len(v.Got())-1], "props")
}
