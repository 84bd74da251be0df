package discord

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
)

func TestConfigIsChecked(t *testing.T) {
	good := Config{Account: "main", Token: token}
	_, err := New(good)
	require.NoError(t, err)
	for name, bad := range map[string]func(*Config){
		"Account":    func(c *Config) { c.Account = "" },
		"Token":      func(c *Config) { c.Token = "Bot s3cret" },
		"PublicKey":  func(c *Config) { c.PublicKey = "s3cret" },
		"BaseURL":    func(c *Config) { c.BaseURL = "http://elsewhere.example/s3cret" },
		"GatewayURL": func(c *Config) { c.GatewayURL = "https://s3cret.example" },
	} {
		c := good
		bad(&c)
		_, err := New(c)
		require.ErrorContains(t, err, name)
		require.NotContains(t, err.Error(), "s3cret")
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
	}}}, v.got())
	require.Len(t, nonce(c.Key), 25)
}

func TestRetryWithTheSameKeySendsNothingTwice(t *testing.T) {
	v := newVendor(t)
	a, _ := newAdapter(t, v)
	v.answer = func(n int, c call, w http.ResponseWriter) bool {
		if n != 1 {
			return false
		}
		v.create(discard{}, c, n) // Discord has the message, and its response is lost
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = conn.Close()
		}
		return true
	}
	_, err := a.Send(t.Context(), chunk())
	require.Equal(t, adapter.Failure{Reason: "connection lost"}, failure(t, err))
	sent, err := a.Send(t.Context(), chunk())
	require.NoError(t, err)
	require.Equal(t, "9001", sent.ID)
	other, err := a.Send(t.Context(), chunk(func(c *adapter.Chunk) { c.Key = "a-delivery-with-a-long-identity/1" }))
	require.NoError(t, err)
	require.NotEqual(t, sent, other)
}

type discard struct{ http.ResponseWriter }

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func TestThreadWinsOverTheRecipient(t *testing.T) {
	v := newVendor(t)
	a, _ := newAdapter(t, v)
	_, err := a.Send(t.Context(), chunk(func(c *adapter.Chunk) { c.To.Thread = "701" }))
	require.NoError(t, err)
	require.Equal(t, "/channels/701/messages", v.got()[0].Path)
	for _, bad := range []func(*adapter.Chunk){
		func(c *adapter.Chunk) { c.To.Recipient = "../users/@me" },
		func(c *adapter.Chunk) { c.To.Thread = "7?x" },
	} {
		_, err := a.Send(t.Context(), chunk(bad))
		require.True(t, failure(t, err).Final)
	}
	require.Len(t, v.got(), 1)
}

func TestThreadOfTheMessageIsStartedOnce(t *testing.T) {
	v := newVendor(t)
	started := false
	v.answer = func(_ int, c call, w http.ResponseWriter) bool {
		switch {
		case c.Path == "/channels/700/messages/800/threads":
			started = true
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"id":"800","type":11}`)
		case !started:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"message":"Unknown Channel","code":10003}`)
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
	for _, c := range v.got() {
		paths = append(paths, c.Path)
	}
	require.Equal(t, []string{
		"/channels/800/messages", "/channels/700/messages/800/threads", "/channels/800/messages", "/channels/800/messages",
	}, paths)
	require.Equal(t, map[string]any{"name": "berth"}, v.got()[1].Params)
	started = false
	_, err := a.Send(t.Context(), chunk(inThread, func(c *adapter.Chunk) { c.Index = 1 }))
	require.True(t, failure(t, err).Final, "a thread that was deleted in between is not started again")
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
			v.answer = func(_ int, _ call, w http.ResponseWriter) bool {
				for k, value := range c.header {
					w.Header().Set(k, value)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
				return true
			}
			a, _ := newAdapter(t, v)
			_, err := a.Send(t.Context(), chunk())
			require.Equal(t, c.want, failure(t, err))
			require.Len(t, v.got(), 1, "nothing is retried here")
		})
	}
}

func TestGlobalRateLimitStopsTheAccount(t *testing.T) {
	v := newVendor(t)
	v.answer = func(n int, _ call, w http.ResponseWriter) bool {
		if n == 1 {
			w.Header().Set("X-RateLimit-Global", "true")
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"message":"You are being rate limited.","retry_after":2.5,"global":true}`)
		}
		return n == 1
	}
	now := clock.NewFake(time.UnixMilli(1_000_000))
	a, _ := newAdapter(t, v, func(c *Config) { c.Clock = now })
	_, err := a.Send(t.Context(), chunk())
	require.Equal(t, 2501*time.Millisecond, failure(t, err).RetryAfter)
	now.Advance(time.Second)
	_, err = a.Send(t.Context(), chunk(func(c *adapter.Chunk) { c.To.Recipient = "999" }))
	require.Equal(t, adapter.Failure{Reason: "rate limit of the account", Status: 429, RetryAfter: 1501 * time.Millisecond}, failure(t, err))
	require.Len(t, v.got(), 1, "another channel is not tried either")
	now.Advance(1501 * time.Millisecond)
	_, err = a.Send(t.Context(), chunk())
	require.NoError(t, err)
}

func TestMalformedRateLimitHeadersLoseNoMessage(t *testing.T) {
	v := newVendor(t)
	v.answer = func(_ int, _ call, w http.ResponseWriter) bool {
		w.Header().Set("X-RateLimit-Remaining", "many")
		w.Header().Set("X-RateLimit-Reset", "soon")
		return false
	}
	a, _ := newAdapter(t, v)
	_, err := a.Send(t.Context(), chunk())
	require.NoError(t, err)
}
