package telegram

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/processors/channel/text"
)

func TestConfigIsChecked(t *testing.T) {
	good := Config{Account: "main", Token: token, Username: "turntable_bot"}
	_, err := New(good)
	require.NoError(t, err)
	for name, err := range platformtest.Refused(t, New, good, map[string]func(*Config){
		"Account":  func(c *Config) { c.Account = "" },
		"Token":    func(c *Config) { c.Token = "s3cret" },
		"Token:":   func(c *Config) { c.Token = "12:s3cret/../x" },
		"Username": func(c *Config) { c.Username = "@bot" },
		"Secret":   func(c *Config) { c.Secret = "short" },
		"BaseURL":  func(c *Config) { c.BaseURL = "http://elsewhere.example/s3cret" },
	}) {
		require.ErrorContains(t, err, "telegram: ", name)
	}
}

func TestSendMessageIsAsDocumented(t *testing.T) {
	v := newVendor(t)
	a, _ := newAdapter(t, v.URL, func(c *Config) { c.Quote = true })
	sent, err := a.Send(t.Context(), chunk(func(c *adapter.Chunk) { c.Ask = &adapter.Ask{GateID: "0123456789abcdef0123456789abcdef", Tool: "pay"} }))
	require.NoError(t, err)
	require.Equal(t, adapter.Sent{ID: "101"}, sent)
	require.Equal(t, []call{{Method: "sendMessage", Params: map[string]any{
		"chat_id": -1007.0, "message_thread_id": 31.0, "text": "<b>Berth N4</b> is free", "parse_mode": "HTML",
		"reply_parameters":     map[string]any{"message_id": 5.0, "allow_sending_without_reply": true},
		"link_preview_options": map[string]any{"is_disabled": true},
		"reply_markup": map[string]any{"inline_keyboard": []any{[]any{
			map[string]any{"text": "Approve", "callback_data": "approve:0123456789abcdef0123456789abcdef"},
			map[string]any{"text": "Deny", "callback_data": "deny:0123456789abcdef0123456789abcdef"},
		}}},
	}}}, v.Got())
}

func TestPlainDirectMessageHasNoFurtherParameters(t *testing.T) {
	v := newVendor(t)
	a, _ := newAdapter(t, v.URL, func(c *Config) { c.Quote = true })
	_, err := a.Send(t.Context(), chunk(func(c *adapter.Chunk) {
		c.To.Recipient, c.To.Thread, c.To.Group, c.Format, c.Text = "77", "", false, text.Plain, "5 < 6"
	}))
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"chat_id": 77.0, "text": "5 < 6", "link_preview_options": map[string]any{"is_disabled": true},
	}, v.Got()[0].Params)
}

func TestOnlyTheFirstChunkQuotes(t *testing.T) {
	v := newVendor(t)
	a, _ := newAdapter(t, v.URL, func(c *Config) { c.Quote = true })
	_, err := a.Send(t.Context(), chunk(func(c *adapter.Chunk) { c.Index, c.Count = 1, 2 }))
	require.NoError(t, err)
	require.NotContains(t, v.Got()[0].Params, "reply_parameters")
}

func TestUnusableAddressIsFinalAndNotSentElsewhere(t *testing.T) {
	v := newVendor(t)
	a, _ := newAdapter(t, v.URL)
	for _, bad := range []func(*adapter.Chunk){
		func(c *adapter.Chunk) { c.To.Recipient = "bob" },
		func(c *adapter.Chunk) { c.To.Thread = "general" },
		func(c *adapter.Chunk) { c.To.Thread = "-1" },
	} {
		_, err := a.Send(t.Context(), chunk(bad))
		require.True(t, platformtest.Failure(t, err).Final)
	}
	require.Empty(t, v.Got())
}

func TestFailuresOfTheAPI(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   adapter.Failure
	}{
		"too many requests": {
			429, `{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 14","parameters":{"retry_after":14}}`,
			adapter.Failure{Reason: "status 429", Status: 429, RetryAfter: 14 * time.Second},
		},
		"endless wait": {
			429, `{"ok":false,"error_code":429,"description":"x","parameters":{"retry_after":9000000000000}}`,
			adapter.Failure{Reason: "status 429", Status: 429, RetryAfter: 7 * 24 * time.Hour},
		},
		"chat not found": {
			400, `{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}`,
			adapter.Failure{Reason: "chat not found", Status: 400, Final: true},
		},
		"blocked": {
			403, `{"ok":false,"error_code":403,"description":"Forbidden: bot was blocked by the user"}`,
			adapter.Failure{Reason: "bot was blocked by the user", Status: 403, Final: true},
		},
		"thread gone": {
			400, `{"ok":false,"error_code":400,"description":"Bad Request: message thread not found"}`,
			adapter.Failure{Reason: "message thread not found", Status: 400, Final: true},
		},
		"migrated": {
			400, `{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded","parameters":{"migrate_to_chat_id":-1009}}`,
			adapter.Failure{Reason: "group has become a supergroup", Status: 400, Final: true},
		},
		"quoted text": {
			400, `{"ok":false,"error_code":400,"description":"Bad Request: unsupported start tag \"s3cret\""}`,
			adapter.Failure{Reason: "status 400", Status: 400, Final: true},
		},
		"ok false with 200": {
			200, `{"ok":false,"error_code":403,"description":"Forbidden: bot was kicked from the group chat"}`,
			adapter.Failure{Reason: "bot was kicked", Status: 403, Final: true},
		},
		"ok false without a code": {200, `{"ok":false}`, adapter.Failure{Reason: "response cannot be read", Status: 200}},
		"unauthorized":            {401, `{"ok":false,"error_code":401,"description":"Unauthorized"}`, adapter.Failure{Reason: "status 401", Status: 401}},
		"token unknown":           {404, `{"ok":false,"error_code":404,"description":"Not Found"}`, adapter.Failure{Reason: "unknown token", Status: 404}},
		"proxy":                   {403, `<html>s3cret</html>`, adapter.Failure{Reason: "status 403", Status: 403}},
		"server error":            {502, `Bad Gateway`, adapter.Failure{Reason: "status 502", Status: 502}},
		"redirect":                {302, ``, adapter.Failure{Reason: "status 302", Status: 302}},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVendor(t)
			v.Answers(c.status, map[string]string{"Location": v.URL + "/elsewhere"}, c.body)
			a, _ := newAdapter(t, v.URL)
			_, err := a.Send(t.Context(), chunk())
			require.Equal(t, c.want, platformtest.Failure(t, err))
			require.Len(t, v.Got(), 1, "redirects are not followed, nothing is retried here")
		})
	}
}

func TestConnectionCutBetweenChunks(t *testing.T) {
	v := newVendor(t)
	v.Answer = func(n int, _ call, w http.ResponseWriter) bool {
		if n == 2 {
			platformtest.Cut(w)
		} else {
			_, _ = io.WriteString(w, `{"ok":true,"result":{"message_id":8}}`)
		}
		return true
	}
	a, _ := newAdapter(t, v.URL)
	_, err := a.Send(t.Context(), chunk())
	require.NoError(t, err)
	_, err = a.Send(t.Context(), chunk(func(c *adapter.Chunk) { c.Index = 1 }))
	require.Equal(t, adapter.Failure{Reason: "connection lost"}, platformtest.Failure(t, err))
	sent, err := a.Send(t.Context(), chunk(func(c *adapter.Chunk) { c.Index = 1 }))
	require.NoError(t, err)
	require.Equal(t, "8", sent.ID)
}

func TestNetworkErrorsDoNotShowTheToken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	a, _ := newAdapter(t, "http://"+l.Addr().String())
	_, err = a.Send(t.Context(), chunk())
	require.Equal(t, adapter.Failure{Reason: "no connection"}, platformtest.Failure(t, err)) // which checks that the secret is not in it
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(untrusted.Close)
	a, _ = newAdapter(t, untrusted.URL)
	_, err = a.Send(t.Context(), chunk())
	require.Equal(t, adapter.Failure{Reason: "no TLS"}, platformtest.Failure(t, err))
}
