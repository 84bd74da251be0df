package matrix

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
)

func TestConfigIsChecked(t *testing.T) {
	good := Config{Account: "main", BaseURL: "https://matrix.example.org", AccessToken: token, UserID: bot}
	_, err := New(good)
	require.NoError(t, err)
	for name, err := range platformtest.Refused(t, New, good, map[string]func(*Config){
		"Account":         func(c *Config) { c.Account = "" },
		"BaseURL":         func(c *Config) { c.BaseURL = "http://s3cret.example" },
		"AccessToken":     func(c *Config) { c.AccessToken = "s3cret\n" },
		"UserID":          func(c *Config) { c.UserID = "bot" },
		"HomeserverToken": func(c *Config) { c.HomeserverToken = "s3cret" },
	}) {
		require.ErrorContains(t, err, name)
	}
}

func TestChunksHaveTransactionsOfTheirOwnAndStayInTheThread(t *testing.T) {
	v := newVendor(t)
	a, _ := newAdapter(t, v.URL)
	first, err := a.Send(t.Context(), chunk())
	require.NoError(t, err)
	require.Equal(t, adapter.Sent{ID: "$event1"}, first)
	second, err := a.Send(t.Context(), chunk(func(c *adapter.Chunk) { c.Key, c.Index, c.Previous = "d-1/1", 1, []adapter.Sent{first} }))
	require.NoError(t, err)
	require.Equal(t, adapter.Sent{ID: "$event2"}, second, "the homeserver does not take it for a repeat")
	content := func(latest string) map[string]any {
		return map[string]any{
			"msgtype": "m.text", "body": "Berth N4 is free", "m.mentions": map[string]any{},
			"m.relates_to": map[string]any{
				"rel_type": "m.thread", "event_id": "$root", "is_falling_back": true, "m.in_reply_to": map[string]any{"event_id": latest},
			},
		}
	}
	path := "/rooms/%21room%2F1:example.org/send/m.room.message/"
	require.Equal(t, []put{
		{Path: path + transactionID("d-1/0"), Body: content("$asked")}, {Path: path + transactionID("d-1/1"), Body: content("$event1")},
	}, v.Got())
	_, err = a.Send(t.Context(), chunk(func(c *adapter.Chunk) { c.To.Thread, c.Key = "", "d-2/0" }))
	require.NoError(t, err)
	require.NotContains(t, v.Got()[2].Body, "m.relates_to")
	_, err = a.Send(t.Context(), chunk(func(c *adapter.Chunk) { c.To.Recipient = "#alias:example.org" }))
	require.True(t, platformtest.Failure(t, err).Final)
}

func TestConnectionCutBetweenChunksSendsNothingTwice(t *testing.T) {
	v := newVendor(t)
	v.Answer = func(n int, p put, w http.ResponseWriter) bool {
		if n != 2 {
			return false
		}
		v.take(p, n)
		platformtest.Cut(w)
		return true
	}
	a, _ := newAdapter(t, v.URL)
	_, err := a.Send(t.Context(), chunk())
	require.NoError(t, err)
	second := func(c *adapter.Chunk) { c.Key, c.Index = "d-1/1", 1 }
	_, err = a.Send(t.Context(), chunk(second))
	require.Equal(t, "connection lost", platformtest.Failure(t, err).Reason)
	sent, err := a.Send(t.Context(), chunk(second))
	require.NoError(t, err)
	require.Equal(t, "$event2", sent.ID, "the event of the first try")
}

func TestFailuresOfTheAPI(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		header map[string]string
		body   string
		want   adapter.Failure
	}{
		"rate limit": {
			429, nil, `{"errcode":"M_LIMIT_EXCEEDED","error":"x","retry_after_ms":2500}`,
			adapter.Failure{Reason: "status 429, M_LIMIT_EXCEEDED", Status: 429, RetryAfter: 2500 * time.Millisecond},
		},
		"rate limit with header": {
			429,
			map[string]string{"Retry-After": "4"},
			`{"errcode":"M_LIMIT_EXCEEDED","retry_after_ms":2500}`,
			adapter.Failure{Reason: "status 429, M_LIMIT_EXCEEDED", Status: 429, RetryAfter: 4 * time.Second},
		},
		"endless wait": {
			429, nil, `{"errcode":"M_LIMIT_EXCEEDED","retry_after_ms":9000000000000000000}`,
			adapter.Failure{Reason: "status 429, M_LIMIT_EXCEEDED", Status: 429, RetryAfter: 7 * 24 * time.Hour},
		},
		"not in the room": {403, nil, `{"errcode":"M_FORBIDDEN","error":"s3cret"}`, adapter.Failure{Reason: "status 403, M_FORBIDDEN", Status: 403, Final: true}},
		"no room":         {404, nil, `{"errcode":"M_NOT_FOUND"}`, adapter.Failure{Reason: "status 404, M_NOT_FOUND", Status: 404, Final: true}},
		"too large":       {413, nil, `{"errcode":"M_TOO_LARGE"}`, adapter.Failure{Reason: "status 413, M_TOO_LARGE", Status: 413, Final: true}},
		"unknown token":   {401, nil, `{"errcode":"M_UNKNOWN_TOKEN"}`, adapter.Failure{Reason: "status 401, M_UNKNOWN_TOKEN", Status: 401}},
		"deactivated":     {403, nil, `{"errcode":"M_USER_DEACTIVATED"}`, adapter.Failure{Reason: "status 403, M_USER_DEACTIVATED", Status: 403}},
		"proxy":           {404, nil, `<html>s3cret`, adapter.Failure{Reason: "status 404", Status: 404}},
		"server error":    {502, nil, `s3cret`, adapter.Failure{Reason: "status 502", Status: 502}},
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
