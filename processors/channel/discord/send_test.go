package discord

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
)

func TestConfigIsChecked(t *testing.T) {
	good := Config{Account: "main", Token: token}
	_, err := New(good)
	require.NoError(t, err)
	for name, err := range platformtest.Refused(t, New, good, map[string]func(*Config){
		"Account":    func(c *Config) { c.Account = "" },
		"Token":      func(c *Config) { c.Token = "Bot s3cret" },
		"PublicKey":  func(c *Config) { c.PublicKey = "s3cret" },
		"BaseURL":    func(c *Config) { c.BaseURL = "http://elsewhere.example/s3cret" },
		"GatewayURL": func(c *Config) { c.GatewayURL = "https://s3cret.example" },
	}) {
		require.ErrorContains(t, err, name)
	}
}

func TestCreateMessageIsAsDocumented(t *testing.T) {
	v := newVendor(t)
	a, _ := newAdapter(t, v)
	c := chunk(func(c *adapter.Chunk) { c.Ask = &adapter.Ask{GateID: "g-1", Tool: "pay"} })
	sent, err := a.Send(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, adapter.Sent{ID: "9001"}, sent)
	require.Equal(t, []call{{Method: "POST", Path: "/channels/700/messages", Params: map[string]any{
		"content": "**Berth N4** is free, @everyone", "nonce": nonce(c.Key), "enforce_nonce": true,
		"allowed_mentions": map[string]any{"parse": []any{}}, "flags": 4.0,
		"components": []any{map[string]any{"type": 1.0, "components": []any{
			map[string]any{"type": 2.0, "style": 3.0, "label": "Approve", "custom_id": "approve:g-1", "disabled": false},
			map[string]any{"type": 2.0, "style": 4.0, "label": "Deny", "custom_id": "deny:g-1", "disabled": false},
		}}},
	}}}, v.Got())
	require.Len(t, nonce(c.Key), 25)
}

func TestRetryWithTheSameKeySendsNothingTwice(t *testing.T) {
	v := newVendor(t)
	a, _ := newAdapter(t, v)
	v.Answer = func(n int, c call, w http.ResponseWriter) bool {
		if n != 1 {
			return false
		}
		v.created(c, n) // Discord has the message, and its response is lost
		platformtest.Cut(w)
		return true
	}
	_, err := a.Send(t.Context(), chunk())
	require.Equal(t, adapter.Failure{Reason: "connection lost"}, platformtest.Failure(t, err))
	sent, err := a.Send(t.Context(), chunk())
	require.NoError(t, err)
	require.Equal(t, "9001", sent.ID)
	other, err := a.Send(t.Context(), chunk(func(c *adapter.Chunk) { c.Key = "a-delivery-with-a-long-identity/1" }))
	require.NoError(t, err)
	require.NotEqual(t, sent, other)
}

func TestThreadWinsOverTheRecipient(t *testing.T) {
	v := newVendor(t)
	a, _ := newAdapter(t, v)
	_, err := a.Send(t.Context(), chunk(func(c *adapter.Chunk) { c.To.Thread = "701" }))
	require.NoError(t, err)
	require.Equal(t, "/channels/701/messages", v.Got()[0].Path)
	for _, bad := range []func(*adapter.Chunk){
		func(c *adapter.Chunk) { c.To.Recipient = "../users/@me" },
		func(c *adapter.Chunk) { c.To.Thread = "7?x" },
	} {
		_, err := a.Send(t.Context(), chunk(bad))
		require.True(t, platformtest.Failure(t, err).Final)
	}
	require.Len(t, v.Got(), 1)
}

func TestThreadOfTheMessageIsStartedOnce(t *testing.T) {
	v := newVendor(t)
	started := false
	v.Answer = func(_ int, c call, w http.ResponseWriter) bool {
		switch {
		case c.Path == "/channels/700/messages/800/threads":
			started = true
			platformtest.Answer(w, http.StatusCreated, `{"id":"800","type":11}`)
		case !started:
			platformtest.Answer(w, http.StatusNotFound, `{"message":"Unknown Channel","code":10003}`)
		default:
			return false
		}
		return true
	}
	a, _ := newAdapter(t, v)
	inThread := func(c *adapter.Chunk) { c.To.Thread, c.SenderName = "800", "berth" }
	for range 2 {
		_, err := a.Send(t.Context(), chunk(inThread))
		require.NoError(t, err)
	}
	var paths []string
	for _, c := range v.Got() {
		paths = append(paths, c.Path)
	}
	require.Equal(t, []string{
		"/channels/800/messages", "/channels/700/messages/800/threads", "/channels/800/messages", "/channels/800/messages",
	}, paths)
	require.Equal(t, map[string]any{"name": "berth"}, v.Got()[1].Params)
	started = false
	_, err := a.Send(t.Context(), chunk(inThread, func(c *adapter.Chunk) { c.Index = 1 }))
	require.True(t, platformtest.Failure(t, err).Final, "a thread that was deleted in between is not started again")
}

// The header of a rate limit counts although the body did not arrive.
func TestRateLimitWithoutItsBodyIsKept(t *testing.T) {
	v := newVendor(t)
	v.Answer = func(_ int, _ call, w http.ResponseWriter) bool {
		w.Header().Set("Content-Length", "100")
		w.Header().Set("Retry-After", "3")
		w.Header().Set("X-RateLimit-Global", "true")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, "{")
		return true
	}
	a, _ := newAdapter(t, v)
	for range 2 {
		_, err := a.Send(t.Context(), chunk())
		f := platformtest.Failure(t, err)
		require.Equal(t, http.StatusTooManyRequests, f.Status)
		require.Positive(t, f.RetryAfter)
	}
	require.Len(t, v.Got(), 1, "the account pauses")
}

func TestFailuresOfTheAPI(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		header map[string]string
		body   string
		want   adapter.Failure
	}{
		"rate limit": {
			429,
			map[string]string{"Retry-After": "65", "X-RateLimit-Reset-After": "64.5", "X-RateLimit-Scope": "user"},
			`{"message":"You are being rate limited.","retry_after":64.5,"global":false}`,
			adapter.Failure{Reason: "status 429", Status: 429, RetryAfter: 64501 * time.Millisecond},
		},
		"rate limit of a proxy": {
			429,
			map[string]string{"Retry-After": "9"},
			`<html>`,
			adapter.Failure{Reason: "status 429", Status: 429, RetryAfter: 9 * time.Second},
		},
		"unknown channel": {404, nil, `{"message":"Unknown Channel","code":10003}`, adapter.Failure{Reason: "unknown channel", Status: 404, Final: true}},
		"blocked": {
			403, nil, `{"message":"Cannot send messages to this user","code":50007}`,
			adapter.Failure{Reason: "the user takes no messages of the bot", Status: 403, Final: true},
		},
		"invalid":      {400, nil, `{"message":"s3cret","code":50035}`, adapter.Failure{Reason: "status 400, code 50035", Status: 400, Final: true}},
		"wrong token":  {401, nil, `{"message":"401: Unauthorized","code":0}`, adapter.Failure{Reason: "status 401", Status: 401}},
		"proxy":        {403, nil, `<html>s3cret`, adapter.Failure{Reason: "status 403", Status: 403}},
		"bad gateway":  {502, nil, `s3cret`, adapter.Failure{Reason: "status 502", Status: 502}},
		"server error": {500, map[string]string{"X-RateLimit-Reset-After": "never"}, `{"message":"x","code":0}`, adapter.Failure{Reason: "status 500", Status: 500}},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVendor(t)
			v.Answers(c.status, c.header, c.body)
			a, _ := newAdapter(t, v)
			_, err := a.Send(t.Context(), chunk())
			require.Equal(t, c.want, platformtest.Failure(t, err))
			require.Len(t, v.Got(), 1, "nothing is retried here")
		})
	}
}

func TestGlobalRateLimitStopsTheAccount(t *testing.T) {
	v := newVendor(t)
	v.Answer = func(n int, _ call, w http.ResponseWriter) bool {
		if n == 1 {
			platformtest.Answer(w, http.StatusTooManyRequests, `{"message":"You are being rate limited.","retry_after":2.5,"global":true}`,
				"X-RateLimit-Global", "true", "Retry-After", "3")
		}
		return n == 1
	}
	now := clock.NewFake(time.UnixMilli(1_000_000))
	a, _ := newAdapter(t, v, func(c *Config) { c.Clock = now })
	_, err := a.Send(t.Context(), chunk())
	require.Equal(t, 2501*time.Millisecond, platformtest.Failure(t, err).RetryAfter)
	now.Advance(time.Second)
	_, err = a.Send(t.Context(), chunk(func(c *adapter.Chunk) { c.To.Recipient = "999" }))
	require.Equal(t, adapter.Failure{Reason: "rate limit of the account", Status: 429, RetryAfter: 1501 * time.Millisecond}, platformtest.Failure(t, err))
	require.Len(t, v.Got(), 1, "another channel is not tried either")
	now.Advance(1501 * time.Millisecond)
	_, err = a.Send(t.Context(), chunk())
	require.NoError(t, err)
}

func TestMalformedRateLimitHeadersLoseNoMessage(t *testing.T) {
	v := newVendor(t)
	v.Answer = func(_ int, _ call, w http.ResponseWriter) bool {
		w.Header().Set("X-RateLimit-Remaining", "many")
		w.Header().Set("X-RateLimit-Reset", "soon")
		return false
	}
	a, _ := newAdapter(t, v)
	_, err := a.Send(t.Context(), chunk())
	require.NoError(t, err)
}
