package websocket

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	ws "github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/socket"
)

func as(caller auth.Caller) func(*Config) {
	return func(c *Config) {
		c.Authenticate = func(*http.Request) (auth.Caller, error) { return caller, nil }
	}
}

func TestClientNeedsTheRightToReadAndACredentialThatHasNotEnded(t *testing.T) {
	for name, c := range map[string]struct {
		caller auth.Caller
		status int
	}{
		"may not read": {auth.Caller{Rights: auth.AllRights &^ auth.Read}, http.StatusForbidden},
		"expires now":  {auth.Caller{Expires: noon}, http.StatusUnauthorized},
		"revoked":      {auth.Caller{Revoked: func() bool { return true }}, http.StatusUnauthorized},
		"may":          {auth.Caller{Rights: auth.Read, Expires: noon.Add(1)}, http.StatusSwitchingProtocols},
	} {
		_, response, _ := newFixture(t, as(c.caller)).dial("/")
		require.Equal(t, c.status, response.StatusCode, name)
	}
}

func TestConnectionIsClosedWhenItsCredentialExpires(t *testing.T) {
	s := newFixture(t, as(auth.Caller{Expires: noon.Add(90 * time.Second)}))
	b := s.open().subscribe("s")
	s.take("message-input", "s", 1, `{}`)
	b.next()
	require.NoError(t, s.clock.WaitTickers(t.Context(), 1))
	s.clock.Advance(90 * time.Second)
	require.Equal(t, ws.CloseError{Code: 4401, Reason: socket.ReasonExpired}, b.ending())
	_, response, err := s.dial("/")
	require.Error(t, err)
	require.Equal(t, http.StatusUnauthorized, response.StatusCode)
}

func TestConnectionIsClosedWhenItsCredentialIsRevoked(t *testing.T) {
	var revoked atomic.Bool
	s := newFixture(t, as(auth.Caller{Revoked: revoked.Load}))
	b := s.open().subscribe("s")
	require.NoError(t, s.clock.WaitTickers(t.Context(), 1))
	revoked.Store(true)
	s.clock.Advance(10 * time.Second)
	require.Equal(t, StatusCredentialExpired, b.ending().Code)
}

func TestBrowserSendsItsTokenAsASubprotocol(t *testing.T) {
	s := newFixture(t, func(c *Config) {
		c.Authenticate = func(r *http.Request) (auth.Caller, error) {
			token, err := auth.Bearer(r)
			if err == nil && token != "t0ken" {
				err = auth.ErrRejected
			}
			return auth.Caller{}, err
		}
	})
	dial := func(path string, offers ...string) (*ws.Conn, *http.Response, error) {
		return ws.Dial(t.Context(), "ws"+strings.TrimPrefix(s.http.URL, "http")+path, &ws.DialOptions{Subprotocols: offers, HTTPClient: s.http.Client()})
	}
	conn, response, err := dial("/", "turntable", "turntable.bearer.t0ken")
	require.NoError(t, err)
	defer func() { _ = conn.CloseNow() }()
	require.Equal(t, []string{"turntable"}, response.Header.Values("Sec-WebSocket-Protocol"), "the token is not in the response")
	for path, offer := range map[string]string{
		"/": "turntable.bearer.guess", "/x": "chat", "/?token=t0ken&access_token=t0ken": "turntable",
	} {
		_, response, err = dial(path, "turntable", offer)
		require.Error(t, err)
		require.Equal(t, http.StatusUnauthorized, response.StatusCode)
	}
}
