package mattermost

import (
	"net/http"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
)

func TestConfigIsChecked(t *testing.T) {
	good := Config{Account: "main", BaseURL: "https://chat.example", Token: token, Username: "turntable"}
	a, err := New(good)
	require.NoError(t, err)
	require.False(t, a.Traits().Buttons)
	for name, err := range platformtest.Refused(t, New, good, map[string]func(*Config){
		"Account":        func(c *Config) { c.Account = "" },
		"BaseURL":        func(c *Config) { c.BaseURL = "http://s3cret.example" },
		"Token":          func(c *Config) { c.Token = "s3cret\n" },
		"Username":       func(c *Config) { c.Username = "@x" },
		"CallbackURL":    func(c *Config) { c.CallbackURL, c.CallbackSecret = "s3cret", "a-s3cret-of-16-bytes" },
		"CallbackSecret": func(c *Config) { c.CallbackURL, c.CallbackSecret = "https://a.example", "s3cret" },
	}) {
		require.ErrorContains(t, err, name)
	}
}

func TestPostIsAsDocumented(t *testing.T) {
	v := newVendor(t)
	a, _ := newAdapter(t, v.URL)
	sent, err := a.Send(t.Context(), chunk())
	require.NoError(t, err)
	require.Equal(t, adapter.Sent{ID: "post1"}, sent)
	_, err = a.Send(t.Context(), chunk(func(c *adapter.Chunk) { c.To.Thread, c.Key = "", "d-1/1" }))
	require.NoError(t, err)
	require.Equal(t, []map[string]any{
		{"channel_id": "chan1", "message": "**Berth N4** is free", "root_id": "root1", "pending_post_id": pendingID("d-1/0")},
		{"channel_id": "chan1", "message": "**Berth N4** is free", "pending_post_id": pendingID("d-1/1")},
	}, v.Got())
}

// The words are found as Mattermost's server does: runs of letters, digits and ":.-_@", without the punctuation around them.
func TestTextNotifiesNoChannel(t *testing.T) {
	v := newVendor(t)
	a, _ := newAdapter(t, v.URL)
	for text, want := range map[string]string{
		"@channel now":                        "＠channel now",
		"**@All**, @here. _@all_ (@channel)":  "**＠All**, ＠here. _＠all_ (＠channel)",
		"@here @here":                         "＠here ＠here",
		"&#64;channel &#x40;all &commat;here": "＠channel ＠all ＠here",
		"write to ada@here.example or @ada":   "write to ada@here.example or @ada",
	} {
		_, err := a.Send(t.Context(), chunk(func(c *adapter.Chunk) { c.Text = text }))
		require.NoError(t, err)
		got := v.Got()
		message := got[len(got)-1]["message"].(string)
		require.Equal(t, want, message)
		require.LessOrEqual(t, utf8.RuneCountInString(message), utf8.RuneCountInString(text))
	}
}

func TestConnectionCutBetweenChunksSendsNothingTwice(t *testing.T) {
	v := newVendor(t)
	v.Answer = func(n int, p map[string]any, w http.ResponseWriter) bool {
		if n != 2 {
			return false
		}
		v.create(p, n)
		platformtest.Cut(w)
		return true
	}
	a, _ := newAdapter(t, v.URL)
	_, err := a.Send(t.Context(), chunk())
	require.NoError(t, err)
	second := func(c *adapter.Chunk) { c.Key, c.Index = "d-1/1", 1 }
	_, err = a.Send(t.Context(), chunk(second))
	require.Equal(t, adapter.Failure{Reason: "connection lost"}, platformtest.Failure(t, err))
	sent, err := a.Send(t.Context(), chunk(second))
	require.NoError(t, err)
	require.Equal(t, "post2", sent.ID, "the post of the first try")
}

func TestFailuresOfTheAPI(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		header map[string]string
		body   string
		want   adapter.Failure
	}{
		"rate limit":        {429, map[string]string{"X-Ratelimit-Reset": "7"}, `limit exceeded`, adapter.Failure{Reason: "status 429", Status: 429, RetryAfter: 7 * time.Second}},
		"retry":             {429, map[string]string{"Retry-After": "3", "X-Ratelimit-Reset": "7"}, ``, adapter.Failure{Reason: "status 429", Status: 429, RetryAfter: 3 * time.Second}},
		"time of the reset": {429, map[string]string{"X-Ratelimit-Reset": "1700000000"}, ``, adapter.Failure{Reason: "status 429", Status: 429}},
		"forbidden": {
			403, nil, `{"id":"api.context.permissions.app_error","message":"s3cret","status_code":403}`,
			adapter.Failure{Reason: "status 403, api.context.permissions.app_error", Status: 403, Final: true},
		},
		"unknown channel": {
			404, nil, `{"id":"app.channel.get.existing.app_error"}`,
			adapter.Failure{Reason: "status 404, app.channel.get.existing.app_error", Status: 404, Final: true},
		},
		"invalid":      {400, nil, `{"id":"api.post.create_post.root_id.app_error"}`, adapter.Failure{Reason: "status 400, api.post.create_post.root_id.app_error", Status: 400, Final: true}},
		"wrong token":  {401, nil, `{"id":"api.context.session_expired.app_error"}`, adapter.Failure{Reason: "status 401, api.context.session_expired.app_error", Status: 401}},
		"proxy":        {404, nil, `<html>s3cret`, adapter.Failure{Reason: "status 404", Status: 404}},
		"server error": {503, nil, `s3cret`, adapter.Failure{Reason: "status 503", Status: 503}},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVendor(t)
			v.Answers(c.status, c.header, c.body)
			a, _ := newAdapter(t, v.URL)
			_, err := a.Send(t.Context(), chunk())
			require.Equal(t, c.want, platformtest.Failure(t, err))
		})
	}
}
