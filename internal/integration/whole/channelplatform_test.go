package whole

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/text"
)

// post is a message that a platform has accepted.
type post struct {
	channel, recipient, thread string
	key, text                  string
}

// platform plays all platforms of a test: it accepts posts, some of them without an answer, and refuses some.
type platform struct {
	*httptest.Server
	mu       sync.Mutex
	accepted []post
	requests int
	changed  func()
}

func newPlatform(t *testing.T) *platform {
	p := &platform{changed: func() {}}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// posts returns what was accepted until now, in order.
func (p *platform) posts() []post {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]post(nil), p.accepted...)
}

func (p *platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	switch {
	case p.requests%17 == 0:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case p.requests%23 == 0:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	h := r.Header
	p.accepted = append(p.accepted, post{
		h.Get("Channel"), h.Get("Recipient"), h.Get("Thread"), h.Get("Idempotency-Key"), string(body),
	})
	p.changed()
	if p.requests%29 == 0 {
		panic(http.ErrAbortHandler) // accepted, but the sender does not learn it
	}
	_, _ = io.WriteString(w, strconv.Itoa(len(p.accepted)))
}

// poster is an adapter for the platform.
type poster struct {
	channel, url string
	limit        int
}

func (a poster) Channel() string { return a.channel }

func (a poster) Traits() adapter.Traits {
	return adapter.Traits{Format: text.Plain, Limit: text.Limit{Max: a.limit, Unit: text.Runes}, Threads: true}
}

func (a poster) Send(ctx context.Context, c adapter.Chunk) (adapter.Sent, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, strings.NewReader(c.Text))
	if err != nil {
		return adapter.Sent{}, &adapter.Failure{Reason: "request", Final: true}
	}
	r.Header.Set("Channel", a.channel)
	r.Header.Set("Recipient", c.To.Recipient)
	r.Header.Set("Thread", c.To.Thread)
	r.Header.Set("Idempotency-Key", c.Key)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return adapter.Sent{}, &adapter.Failure{Reason: "network"}
	}
	defer func() { _ = response.Body.Close() }()
	id, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return adapter.Sent{}, &adapter.Failure{Reason: "status " + strconv.Itoa(response.StatusCode), Status: response.StatusCode}
	}
	return adapter.Sent{ID: string(id)}, nil
}
