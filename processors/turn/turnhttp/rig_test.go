package turnhttp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/testing/memnet"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/turn/token"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
)

// noon is the time of the tests' clock.
var noon = time.UnixMilli(1_790_000_000_120)

const (
	secret    = "a secret of at least thirty-two bytes"
	oldSecret = "the secret before, of 32 bytes or more"
)

// fakePublisher is a publisher that stores the records.
type fakePublisher struct {
	mu      sync.Mutex
	records []processors.Outbound
	err     error         // of every call
	gate    chan struct{} // nil, or each call takes one from it
}

func (p *fakePublisher) Publish(ctx context.Context, records ...processors.Outbound) error {
	if p.gate != nil {
		select {
		case <-p.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	p.records = append(p.records, records...)
	return nil
}

func (p *fakePublisher) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

// lines returns the records as "topic key value", with their id where they have one.
func (p *fakePublisher) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := []string{}
	for _, r := range p.records {
		line := r.Topic + " " + r.Key + " " + string(r.Value)
		if id, ok := r.Headers["turntable.id"]; ok {
			line += " " + string(id)
		}
		lines = append(lines, line)
	}
	return lines
}

// fixture serves an agent's doors over HTTP, in memory, so that tests with timeouts can run in bubbles.
type fixture struct {
	t         testing.TB
	publisher *fakePublisher
	clock     *clock.Fake
	http      *httptest.Server
	listener  *memnet.Listener
}

func newFixture(t testing.TB, change ...func(*turnhttp.Config)) *fixture {
	t.Helper()
	s := &fixture{t: t, publisher: &fakePublisher{}, clock: clock.NewFake(noon)}
	c := turnhttp.Config{
		Door: auth.Door{Clock: s.clock}, CallbackSecrets: []string{secret, oldSecret},
		CallbackServices: func(name string) bool { return name == "harbor" },
	}
	for _, f := range change {
		f(&c)
	}
	handler, err := turnhttp.New("pilot", s.publisher, c)
	require.NoError(t, err)
	s.http, s.listener = memnet.Serve(handler)
	t.Cleanup(s.http.Close)
	return s
}

// request is a request; its headers are alternating names and values.
type request struct {
	method, path, body string
	headers            []string
}

// response is an HTTP answer.
type response struct {
	status int
	body   string
	header http.Header
}

func (s *fixture) send(a request) response {
	s.t.Helper()
	if a.method == "" {
		a.method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(s.t.Context(), a.method, s.http.URL+a.path, strings.NewReader(a.body))
	require.NoError(s.t, err)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(a.headers); i += 2 {
		if a.headers[i] == "Content-Type" {
			r.Header.Del("Content-Type")
		}
		r.Header.Add(a.headers[i], a.headers[i+1])
	}
	resp, err := s.http.Client().Do(r)
	require.NoError(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return response{resp.StatusCode, string(body), resp.Header}
}

func (s *fixture) chat(body string, headers ...string) response {
	s.t.Helper()
	return s.send(request{path: turnhttp.ChatPath, body: body, headers: headers})
}

// callback posts a result with a token of claims, to which it adds the agent and an expiry if they are absent.
func (s *fixture) callback(body string, claims token.Claims, headers ...string) response {
	s.t.Helper()
	if claims.Agent == nil {
		claims.Agent = text("pilot")
	}
	if claims.Expires.IsZero() {
		claims.Expires = noon.Add(24 * time.Hour)
	}
	minted, err := token.Mint(secret, claims)
	require.NoError(s.t, err)
	headers = append([]string{"Authorization", "Bearer " + minted}, headers...)
	return s.send(request{path: turnhttp.ToolResponsePath, body: body, headers: headers})
}
