package websocket

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	ws "github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/socket"
)

func TestAnyPathIsServed(t *testing.T) {
	s := newFixture(t)
	for _, path := range []string{"", "/", "/ws", "/a/b?c=d"} {
		_, _, err := s.dial(path)
		require.NoError(t, err)
	}
	response, err := s.http.Client().Get(s.http.URL)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusUpgradeRequired, response.StatusCode)
}

func TestFramesAndClientsAreLimited(t *testing.T) {
	s := newFixture(t, func(c *Config) { c.FrameLimit, c.Concurrency = 64, 2 })
	long := s.open()
	long.send(`{"type":"subscribe","session_id":"` + strings.Repeat("s", 64) + `"}`)
	require.Equal(t, ws.StatusMessageTooBig, long.ending().Code)
	require.Eventually(t, func() bool {
		s.hub.mu.Lock()
		defer s.hub.mu.Unlock()
		return len(s.hub.clients) == 0
	}, waitLimit, time.Millisecond)
	s.open()
	s.open()
	_, response, err := s.dial("/")
	require.Error(t, err)
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	require.Equal(t, "5", response.Header.Get("Retry-After"))
}

func TestCallersSubscribeOnlyToTheirSessions(t *testing.T) {
	s := newFixture(t, func(c *Config) {
		c.Authenticate = func(r *http.Request) (auth.Caller, error) {
			user := r.Header.Get("X-User")
			if user == "" {
				return auth.Caller{}, errors.New("s3cret")
			}
			return auth.Caller{MayUse: func(session string) bool { return strings.HasPrefix(session, user) }}, nil
		}
		c.QueueFrames = 4
		c.QueueBytes = 1 << 20
	})
	_, response, err := s.dial("/")
	require.Error(t, err)
	require.Equal(t, http.StatusUnauthorized, response.StatusCode)
	mira, _, err := s.dial("/", "X-User", "mira")
	require.NoError(t, err)
	mira.subscribe("mira-1").send(`{"type":"subscribe","session_id":"\"kim\""}`)
	require.Equal(t, `{"type":"refused","data":{"session_id":"\"kim\"","reason":"not yours to see"}}`, mira.next().text)
	mira.none("mira-1")
	mira.send(`{"type":"subscribe","session_id":"kim","last_event_id":"x"}`)
	require.Equal(t, "refused", mira.next().kind)
}

func TestOriginsAreLimited(t *testing.T) {
	open := newFixture(t)
	_, _, err := open.dial("/", "Origin", "https://evil.example")
	require.Error(t, err)
	s := newFixture(t, func(c *Config) { c.Origins = []string{"harbor.example"} })
	_, response, err := s.dial("/", "Origin", "https://evil.example")
	require.Error(t, err)
	require.Equal(t, http.StatusForbidden, response.StatusCode)
	_, _, err = s.dial("/", "Origin", "https://harbor.example")
	require.NoError(t, err)
	own := newFixture(t, func(c *Config) { c.Origins = []string{} })
	_, _, err = own.dial("/", "Origin", own.http.URL)
	require.NoError(t, err)
	_, _, err = own.dial("/", "Origin", "https://harbor.example")
	require.Error(t, err)
}

func TestStopSendsQueuedFramesBeforeDisconnecting(t *testing.T) {
	s := newFixture(t)
	b, idle := s.open().subscribe("s"), s.open()
	for i := range 20 {
		s.take("message-input", "s", int64(i), `{}`)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.hub.close()
	}()
	for range 20 {
		b.next()
	}
	away := ws.CloseError{Code: ws.StatusGoingAway, Reason: socket.ReasonStopping}
	require.Equal(t, away, b.ending())
	require.Equal(t, away, idle.ending())
	<-stopped
	_, response, err := s.dial("/")
	require.Error(t, err)
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
}

func TestUnauthenticatedServerLogsOneWarning(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	s := newFixture(t, func(c *Config) { c.Logger = zap.New(core) })
	s.open().subscribe("s")
	require.Equal(t, 1, logs.Len())
	require.Equal(t, 1, logs.FilterMessageSnippet("any client may subscribe to every session").Len())
}

func TestErrorNamesTheInvalidField(t *testing.T) {
	for name, c := range map[string]Config{
		"QueueBytes": {QueueBytes: -1}, "FrameLimit": {FrameLimit: -1}, "PongTimeout": {PongTimeout: -1},
		"Replay.Frames": {Replay: Replay{Frames: -1}}, "Replay.MaxAge": {Replay: Replay{MaxAge: -1}},
		"ResumeKeys": {ResumeKeys: [][]byte{[]byte("short")}}, "Origins": {Door: auth.Door{Origins: []string{"["}}},
		"Limits": {Door: auth.Door{Limits: auth.Limits{BodyRate: -1}}},
	} {
		_, err := New("pilot", c)
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, ": "+name+" ")
	}
	_, err := New(" ", Config{})
	require.ErrorIs(t, err, ErrConfig)
	s, err := New("pilot", Config{})
	require.NoError(t, err)
	require.ErrorIs(t, s.Run(t.Context(), nil), ErrConfig)
	require.ErrorContains(t, s.Run(t.Context(), []string{"127.0.0.1:1"}), "once")
}

func TestFailedHandshakeLeavesNoClient(t *testing.T) {
	s := newFixture(t)
	conn, err := s.dials.DialContext(t.Context(), "tcp", "")
	require.NoError(t, err)
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"))
	require.NoError(t, err)
	answer := make([]byte, 12)
	_, err = conn.Read(answer)
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 400", string(answer))
	require.NoError(t, conn.Close())
	require.Eventually(t, func() bool {
		s.hub.mu.Lock()
		defer s.hub.mu.Unlock()
		return len(s.hub.clients) == 0
	}, waitLimit, time.Millisecond)
}
