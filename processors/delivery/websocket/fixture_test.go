package websocket

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	ws "github.com/coder/websocket"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/testing/memnet"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/topics"
)

const waitLimit = time.Minute

var noon = time.UnixMilli(1_790_000_000_120)

// resumeKey is the key of all servers in tests.
var resumeKey = []byte("0123456789abcdef0123456789abcdef")

// fixture is a server that clients reach in memory, so that tests with timeouts can run in bubbles. Tests pass records to it in place of Run.
type fixture struct {
	*Server
	t     testing.TB
	http  *httptest.Server
	dials *memnet.Listener
	clock *clock.Fake
}

func newFixture(t testing.TB, change ...func(*Config)) *fixture {
	t.Helper()
	at := clock.NewFake(noon)
	c := Config{Door: auth.Door{Clock: at}, ResumeKeys: [][]byte{resumeKey}}
	for _, f := range change {
		f(&c)
	}
	s, err := New("pilot", c)
	require.NoError(t, err)
	w := &fixture{Server: s, t: t, clock: at}
	w.http, w.dials = memnet.Serve(s)
	t.Cleanup(w.http.Close)
	t.Cleanup(s.hub.close)
	return w
}

// browser is a WebSocket client.
type browser struct {
	*ws.Conn
	t    testing.TB
	from *fixture
}

func (s *fixture) dial(path string, headers ...string) (*browser, *http.Response, error) {
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	conn, response, err := ws.Dial(s.t.Context(), "ws"+strings.TrimPrefix(s.http.URL, "http")+path,
		&ws.DialOptions{HTTPHeader: h, HTTPClient: s.http.Client()})
	if err != nil {
		return nil, response, err
	}
	conn.SetReadLimit(1 << 24)
	b := &browser{conn, s.t, s}
	s.t.Cleanup(func() { _ = b.CloseNow() })
	return b, response, nil
}

func (s *fixture) open() *browser {
	s.t.Helper()
	b, _, err := s.dial("/ws")
	require.NoError(s.t, err)
	return b
}

func (b *browser) send(text string) {
	b.t.Helper()
	require.NoError(b.t, b.Write(b.t.Context(), ws.MessageText, []byte(text)))
}

// subscribe returns when the server has handled the subscription.
func (b *browser) subscribe(session string) *browser {
	b.t.Helper()
	before := b.from.subscribers(session)
	b.send(`{"type":"subscribe","session_id":"` + session + `"}`)
	require.Eventually(b.t, func() bool { return b.from.subscribers(session) > before }, waitLimit, time.Millisecond)
	return b
}

func (b *browser) resume(session, last string) *browser {
	b.t.Helper()
	b.send(`{"type":"subscribe","session_id":"` + session + `","last_event_id":"` + last + `"}`)
	return b
}

func (s *fixture) subscribers(session string) int {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if open := s.hub.sessions[session]; open != nil {
		return len(open.subscribers)
	}
	return 0
}

// got is a received frame.
type got struct{ text, kind, data, id string }

func (b *browser) next() got {
	b.t.Helper()
	g, err := b.read()
	require.NoError(b.t, err)
	return g
}

func (b *browser) read() (got, error) {
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	_, text, err := b.Read(ctx)
	if err != nil {
		return got{}, err
	}
	own := func(name string) string {
		v, _ := topics.Lookup(text, name)
		return strings.Trim(string(v), `"`)
	}
	require.True(b.t, jsontext.Value(text).IsValid(), string(text))
	return got{string(text), own("type"), own("data"), own("event_id")}, nil
}

// none requires that the client has received nothing: the next frame is one that none sends to the session.
func (b *browser) none(session string) {
	b.t.Helper()
	b.from.take("tool-use-all-complete", session, 999, `"nothing else was sent"`)
	require.Contains(b.t, b.next().data, "nothing else was sent")
}

// ending reads the remaining frames and returns the status with which the server closes the connection.
func (b *browser) ending() ws.CloseError {
	b.t.Helper()
	for {
		if _, err := b.read(); err != nil {
			var closing ws.CloseError
			require.ErrorAs(b.t, err, &closing)
			return closing
		}
	}
}

// take passes a record of a topic to the server.
func (s *fixture) take(suffix, session string, offset int64, value string, change ...func(*processors.Inbound)) {
	s.hub.onRecord(record(suffix, session, offset, value, change...))
}

func record(suffix, session string, offset int64, value string, change ...func(*processors.Inbound),
) processors.Inbound {
	r := processors.Inbound{
		Topic: "pilot-" + suffix, Partition: 3, Offset: offset, Timestamp: noon, Key: []byte(session),
		Value: []byte(value),
	}
	for _, f := range change {
		f(&r)
	}
	return r
}

func withID(id string) func(*processors.Inbound) {
	return func(r *processors.Inbound) {
		r.Headers = append(r.Headers, processors.Header{Name: topics.HeaderID, Value: []byte(id)})
	}
}

func later(d time.Duration) func(*processors.Inbound) {
	return func(r *processors.Inbound) { r.Timestamp = r.Timestamp.Add(d) }
}

func null(r *processors.Inbound) { r.Value = nil }
