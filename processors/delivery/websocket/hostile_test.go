package websocket

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/auth"
)

// byCookie authenticates a user by the cookie "user".
func byCookie(r *http.Request) (auth.Caller, error) {
	c, err := r.Cookie("user")
	if err != nil {
		return auth.Caller{}, err
	}
	return auth.Caller{UserID: c.Value}, nil
}

func TestOnlyPagesOfTheSameOriginConnectWithAuthentication(t *testing.T) {
	var refused atomic.Int64
	s := newFixture(t, func(c *Config) {
		c.Authenticate = byCookie
		c.Audit = func(e auth.AuditEvent) {
			if e.Action == auth.AuditRefuse && e.Status == 403 && e.Subject == "victim" {
				refused.Add(1)
			}
		}
	})
	for _, evil := range []string{"https://evil.example", "null"} {
		_, response, err := s.dial("/ws", "Origin", evil, "Cookie", "user=victim")
		require.Error(t, err)
		require.Equal(t, 403, response.StatusCode)
	}
	require.Eventually(t, func() bool { return refused.Load() == 2 }, waitLimit, time.Millisecond)
	for _, origin := range []string{s.http.URL, ""} {
		_, _, err := s.dial("/ws", "Origin", origin, "Cookie", "user=victim")
		require.NoError(t, err)
	}
	s = newFixture(t, func(c *Config) { c.Authenticate, c.Origins = byCookie, []string{"https://app.example"} })
	_, _, err := s.dial("/ws", "Origin", "https://app.example", "Cookie", "user=victim")
	require.NoError(t, err)
}

func TestOpenServerAcceptsPagesOfOtherOriginsOnlyIfTheyAreNamed(t *testing.T) {
	_, response, err := newFixture(t).dial("/ws", "Origin", "https://any.example")
	require.Error(t, err)
	require.Equal(t, 403, response.StatusCode)
	_, _, err = newFixture(t, func(c *Config) { c.Origins = []string{"*"} }).dial("/ws", "Origin", "https://any.example")
	require.NoError(t, err)
}

func TestHugeHeadersAreRefusedBeforeAuthentication(t *testing.T) {
	var asked atomic.Bool
	s := newFixture(t, func(c *Config) {
		c.Authenticate = func(*http.Request) (auth.Caller, error) {
			asked.Store(true)
			return auth.Caller{}, http.ErrNoCookie
		}
	})
	for _, name := range []string{"Origin", "Cookie", "Authorization", "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions", "Unknown"} {
		_, response, err := s.dial("/ws", name, strings.Repeat(",", 100_000))
		require.Error(t, err)
		require.Equal(t, 431, response.StatusCode, name)
	}
	require.False(t, asked.Load())
}

func TestSocketsOfACallerAreLimited(t *testing.T) {
	s := newFixture(t, func(c *Config) { c.Authenticate, c.Limits = byCookie, auth.Limits{Caller: auth.Share{Open: 2}} })
	first, _, err := s.dial("/ws", "Cookie", "user=mallory")
	require.NoError(t, err)
	_, _, err = s.dial("/ws", "Cookie", "user=mallory")
	require.NoError(t, err)
	_, response, err := s.dial("/ws", "Cookie", "user=mallory")
	require.Error(t, err)
	require.Equal(t, []any{429, "1"}, []any{response.StatusCode, response.Header.Get("Retry-After")})
	_, _, err = s.dial("/ws", "Cookie", "user=mira")
	require.NoError(t, err)
	require.NoError(t, first.CloseNow())
	require.Eventually(t, func() bool {
		_, _, err := s.dial("/ws", "Cookie", "user=mallory")
		return err == nil
	}, waitLimit, time.Millisecond)
}

func TestSocketsOfASessionAreLimited(t *testing.T) {
	s := newFixture(t, func(c *Config) { c.Limits = auth.Limits{Session: auth.Share{Open: 1}} })
	first := s.open().subscribe("one")
	second := s.open()
	second.send(`{"type":"subscribe","session_id":"one"}`)
	frame := second.next()
	require.Equal(t, "refused", frame.kind)
	require.Contains(t, frame.data, `"retry_after_ms":1000`)
	second.subscribe("two")
	first.subscribe("three") // ends the subscription to one
	second.subscribe("one")
}

func TestSessionWithControlOrBidirectionalCharactersIsRefused(t *testing.T) {
	b := newFixture(t).open()
	for _, id := range []string{`a\n`, `a\u001b[2J`, `\u202ea`, `a\u2066b`} {
		b.send(`{"type":"subscribe","session_id":"` + id + `"}`)
		require.Equal(t, "refused", b.next().kind, id)
	}
}
