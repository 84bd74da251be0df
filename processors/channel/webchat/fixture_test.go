package webchat

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	ws "github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/topics"
)

var noon = time.UnixMilli(1_790_000_000_120)

// fixture is a server on loopback. Its callers name themselves in the header X-User.
type fixture struct {
	*Server
	t       testing.TB
	url     string
	clock   *clock.Fake
	revoked sync.Map // user -> true
}

func newFixture(t testing.TB, r adapter.Receiver, change ...func(*Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: clock.NewFake(noon)}
	c := Config{Account: "main", Clock: f.clock, Authenticate: func(r *http.Request) (auth.Caller, error) {
		user := r.Header.Get("X-User")
		if user == "" {
			return auth.Caller{}, auth.ErrRejected
		}
		caller := auth.Caller{UserID: user, Subject: "key:" + user, Revoked: func() bool { _, ok := f.revoked.Load(user); return ok }}
		switch user {
		case "reader":
			caller.Rights = auth.Read
		case "writer":
			caller.Rights = auth.Read | auth.Write
		case "anonymous":
			caller.UserID = ""
		}
		return caller, nil
	}}
	c = platformtest.With(c, change...)
	s, err := New(c, r)
	require.NoError(t, err)
	server := httptest.NewServer(s)
	f.Server, f.url = s, server.URL
	t.Cleanup(server.Close)
	t.Cleanup(s.Close)
	return f
}

type browser struct {
	*ws.Conn
	t testing.TB
}

func (f *fixture) dial(user string, headers ...string) (*browser, int) {
	f.t.Helper()
	h := http.Header{"X-User": {user}}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	conn, response, err := ws.Dial(f.t.Context(), "ws"+strings.TrimPrefix(f.url, "http"), &ws.DialOptions{HTTPHeader: h})
	if err != nil {
		require.NotNil(f.t, response, err)
		return nil, response.StatusCode
	}
	conn.SetReadLimit(1 << 24)
	b := &browser{conn, f.t}
	f.t.Cleanup(func() { _ = b.CloseNow() })
	return b, response.StatusCode
}

// open connects a user and returns when the user can be answered.
func (f *fixture) open(user string) *browser {
	f.t.Helper()
	b, status := f.dial(user)
	require.Equal(f.t, http.StatusSwitchingProtocols, status)
	require.Equal(f.t, response{Type: "connected", User: user}, b.next())
	b.send(`{"type":"ping"}`)
	require.Equal(f.t, "pong", b.next().Type)
	return b
}

func (b *browser) send(text string) {
	b.t.Helper()
	require.NoError(b.t, b.Write(b.t.Context(), ws.MessageText, []byte(text)))
}

func (b *browser) read() (response, error) {
	ctx, cancel := context.WithTimeout(context.Background(), platformtest.WaitFor)
	defer cancel()
	_, raw, err := b.Read(ctx)
	if err != nil {
		return response{}, err
	}
	var r response
	require.NoError(b.t, json.Unmarshal(raw, &r, json.RejectUnknownMembers(true)), string(raw))
	return r, nil
}

func (b *browser) next() response {
	b.t.Helper()
	r, err := b.read()
	require.NoError(b.t, err)
	return r
}

// ending is the status with which the server closes the connection.
func (b *browser) ending() ws.StatusCode {
	b.t.Helper()
	for {
		if _, err := b.read(); err != nil {
			return ws.CloseStatus(err)
		}
	}
}

func to(user, thread string) topics.Origin {
	return topics.Origin{Channel: Channel, Account: "main", Recipient: user, User: user, Thread: thread, MessageID: "c1"}
}

func chunk(to topics.Origin, text string) adapter.Chunk {
	return adapter.Chunk{To: to, Text: text, Format: "markdown", Key: "delivery/0", Count: 1}
}
