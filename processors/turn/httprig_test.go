package turn_test

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
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/token"
)

// noon is the time of the tests' clock.
var noon = time.UnixMilli(1_790_000_000_120)

const secret = "a secret"

// paper is a publisher that stores the records.
type paper struct {
	mu      sync.Mutex
	records []processors.Outbound
	err     error         // of every call
	gate    chan struct{} // nil, or each call takes one from it
}

func (p *paper) Publish(ctx context.Context, records ...processors.Outbound) error {
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

func (p *paper) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

// lines returns the records as "topic key value", with their id where they have one.
func (p *paper) lines() []string {
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

// site serves an agent's doors with a real HTTP server.
type site struct {
	t     testing.TB
	paper *paper
	clock *clock.Fake
	http  *httptest.Server
}

func newSite(t testing.TB, opts ...turn.DoorOption) *site {
	t.Helper()
	s := &site{t: t, paper: &paper{}, clock: clock.NewFake(noon)}
	opts = append([]turn.DoorOption{
		turn.WithDoorClock(s.clock), turn.WithCallbackSecrets(secret, "the old one"),
		turn.WithCallbackServices(func(name string) bool { return name == "harbor" }),
	}, opts...)
	doors, err := turn.NewDoors("pilot", s.paper, opts...)
	require.NoError(t, err)
	s.http = httptest.NewServer(doors)
	t.Cleanup(s.http.Close)
	return s
}

// asked is a request; its headers are alternating names and values.
type asked struct {
	method, path, body string
	headers            []string
}

// got is an HTTP answer.
type got struct {
	status int
	body   string
	header http.Header
}

func (s *site) ask(a asked) got {
	s.t.Helper()
	if a.method == "" {
		a.method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(s.t.Context(), a.method, s.http.URL+a.path, strings.NewReader(a.body))
	require.NoError(s.t, err)
	for i := 0; i < len(a.headers); i += 2 {
		r.Header.Add(a.headers[i], a.headers[i+1])
	}
	resp, err := s.http.Client().Do(r)
	require.NoError(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return got{resp.StatusCode, string(body), resp.Header}
}

func (s *site) chat(body string, headers ...string) got {
	s.t.Helper()
	return s.ask(asked{path: turn.ChatPath, body: body, headers: headers})
}

func (s *site) callback(body string, claims token.Claims, headers ...string) got {
	s.t.Helper()
	minted, err := token.Mint(secret, claims)
	require.NoError(s.t, err)
	headers = append([]string{"Authorization", "Bearer " + minted}, headers...)
	return s.ask(asked{path: turn.ToolResponsePath, body: body, headers: headers})
}
