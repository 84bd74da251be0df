package platform

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
)

func serve(t *testing.T, h func(*websocket.Conn, *http.Request)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = c.CloseNow() }()
		h(c, r)
	}))
	t.Cleanup(s.Close)
	return "ws" + strings.TrimPrefix(s.URL, "http")
}

func dial(t *testing.T, to string) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), to, http.Header{"X-A": {"1"}}, 64)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close(0) })
	return c
}

func TestMessagesAreJSON(t *testing.T) {
	to := serve(t, func(c *websocket.Conn, r *http.Request) {
		_, raw, _ := c.Read(r.Context())
		_ = c.Write(r.Context(), websocket.MessageText, raw)
		_ = c.Write(r.Context(), websocket.MessageText, []byte(`{`))
		_ = c.Write(r.Context(), websocket.MessageText, []byte(strings.Repeat("1", 65)))
		_, _, _ = c.Read(r.Context())
	})
	c := dial(t, to)
	require.NoError(t, c.Write(t.Context(), map[string]int{"a": 1}))
	var got map[string]int
	require.NoError(t, c.Read(t.Context(), &got))
	require.Equal(t, map[string]int{"a": 1}, got)
	var f *adapter.Failure
	require.ErrorAs(t, c.Read(t.Context(), &got), &f)
	require.Equal(t, "message is not as documented", f.Reason)
	require.ErrorAs(t, c.Read(t.Context(), &got), &f, "the message is too long")
}

func TestCloseCodeIsReported(t *testing.T) {
	c := dial(t, serve(t, func(c *websocket.Conn, _ *http.Request) { _ = c.Close(4004, "s3cret") }))
	err := c.Read(t.Context(), new(any))
	require.Equal(t, 4004, CloseCode(err))
	require.NotContains(t, err.Error(), "s3cret")
	require.Zero(t, CloseCode(nil))
}

func TestRefusedHandshakeHasItsStatus(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/s3cret", r.URL.Path, "redirects are not followed")
		w.Header().Set("Location", "/elsewhere")
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(s.Close)
	_, err := Dial(t.Context(), s.URL+"/s3cret", nil, 64)
	var f *adapter.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, adapter.Failure{Reason: "status 429", Status: 429, RetryAfter: 7 * time.Second}, *f)
}

func TestKeepAliveNoticesADeadConnection(t *testing.T) {
	release := make(chan struct{})
	c := dial(t, serve(t, func(*websocket.Conn, *http.Request) { <-release })) // reads nothing, so it answers no ping
	read := make(chan error)
	go func() { read <- c.Read(t.Context(), new(any)) }()
	var f *adapter.Failure
	require.ErrorAs(t, c.KeepAlive(t.Context(), clock.System(), time.Millisecond), &f)
	require.Equal(t, "timeout", f.Reason)
	close(release)
	require.Error(t, <-read)
}

func TestURL(t *testing.T) {
	for _, good := range []string{"wss://gateway.example", "ws://127.0.0.1:9/x", "ws://localhost"} {
		_, err := SocketURL(good)
		require.NoError(t, err)
	}
	for _, bad := range []string{"", "ws://elsewhere.example", "https://a.example", "wss://u:s3cret@a.example", "wss://a.example?x=s3cret"} {
		_, err := SocketURL(bad)
		require.Error(t, err, bad)
		require.NotContains(t, err.Error(), "s3cret")
	}
}
