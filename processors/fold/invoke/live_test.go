package invoke

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

var noon = time.UnixMilli(1_790_000_000_120)

// live is an agent whose events come when the test sends them.
type live struct {
	items  chan Item
	begun  chan context.Context
	closed chan struct{}
}

func newLive() *live {
	return &live{items: make(chan Item), begun: make(chan context.Context, 10), closed: make(chan struct{}, 10)}
}

func (l *live) Invoke(ctx context.Context, _ Request) (Stream, error) {
	l.begun <- ctx
	return l, nil
}

func (l *live) Next(ctx context.Context) (Item, error) {
	select {
	case item, ok := <-l.items:
		if !ok {
			return Item{}, io.EOF
		}
		return item, nil
	case <-ctx.Done():
		return Item{}, ctx.Err()
	}
}

func (l *live) End() folder.End { return folder.End{} }
func (l *live) Close() error    { l.closed <- struct{}{}; return nil }

func (l *live) say(t *testing.T, text string) {
	t.Helper()
	e, err := folder.NewEvent("message", topics.Raw(`{"text":"`+text+`"}`))
	require.NoError(t, err)
	l.items <- Item{Event: e}
}

// reader reads a stream as it comes.
type reader struct {
	t    *testing.T
	resp *http.Response
	in   *bufio.Reader
}

func (s *site) read(t *testing.T, headers ...string) *reader {
	t.Helper()
	resp := s.send(http.MethodPost, "/invoke", question, headers...)
	t.Cleanup(func() { _ = resp.Body.Close() })
	require.Equal(t, http.StatusOK, resp.StatusCode)
	return &reader{t, resp, bufio.NewReader(resp.Body)}
}

func (r *reader) line() string {
	r.t.Helper()
	line, err := r.in.ReadString('\n')
	require.NoError(r.t, err)
	return line
}

func (r *reader) rest() string {
	r.t.Helper()
	rest, err := io.ReadAll(r.in)
	require.NoError(r.t, err)
	return string(rest)
}

func TestEventIsSentImmediately(t *testing.T) {
	agent := newLive()
	r := newSite(t, agent).read(t, "Accept", "application/x-ndjson")
	for _, text := range []string{"a", "b"} {
		agent.say(t, text)
		require.Contains(t, r.line(), `"`+text+`"`)
	}
	close(agent.items)
	require.Contains(t, r.rest(), "stream_end")
	<-agent.closed
}

func TestSilentStreamSendsKeepalives(t *testing.T) {
	for accept, want := range map[string]string{
		"application/x-ndjson": `{"type": "keepalive", "data": {}}` + "\n",
		"text/event-stream":    ": keepalive\n",
	} {
		agent, now := newLive(), clock.NewFake(noon)
		r := newSite(t, agent, func(c *Config) { c.Clock, c.Keepalive = now, 10*time.Second }).read(t, "Accept", accept)
		require.NoError(t, now.WaitTickers(t.Context(), 1))
		now.Advance(10 * time.Second)
		require.Equal(t, want, r.line())
		if accept == "text/event-stream" {
			require.Equal(t, "\n", r.line())
		}
		now.Advance(6 * time.Second)
		agent.say(t, "a")
		for !strings.Contains(r.line(), `"a"`) {
			continue // its id
		}
		// The ticker ticks after six seconds of silence. The next tick comes at ten.
		now.Advance(4 * time.Second)
		require.Eventually(t, func() bool { return now.Tickers() == 1 }, time.Minute, time.Millisecond)
		close(agent.items)
		require.NotContains(t, r.rest(), "keepalive")
	}
}

func TestVercelStreamKeepsAlive(t *testing.T) {
	agent, now := newLive(), clock.NewFake(noon)
	s := newSite(t, agent, func(c *Config) { c.Clock = now })
	r := s.read(t, "Accept", "text/event-stream", HeaderFormat, "vercel")
	require.NoError(t, now.WaitTickers(t.Context(), 1))
	now.Advance(15 * time.Second)
	for r.line() != ": keepalive\n" {
		continue // start and start-step
	}
	close(agent.items)
	require.True(t, strings.HasSuffix(r.rest(), "data: [DONE]\n\n"))
}

func TestKeepalivesCanBeDisabled(t *testing.T) {
	now := clock.NewFake(noon)
	agent := newLive()
	r := newSite(t, agent, func(c *Config) { c.Clock, c.Keepalive = now, -1 }).read(t, "Accept", "text/event-stream", HeaderFormat, "vercel")
	require.Zero(t, now.Tickers())
	now.Advance(time.Hour)
	close(agent.items)
	require.NotContains(t, r.rest(), "keepalive")
}

// A disconnect cancels the agent's context, nothing more is written, and the stream is closed.
func TestDisconnectCancelsTheRun(t *testing.T) {
	for _, accept := range []string{"application/json", "application/x-ndjson", "text/event-stream"} {
		agent := newLive()
		s := newSite(t, agent)
		ctx, leave := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.http.URL+"/invoke", strings.NewReader(question))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", accept)
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			resp, err := s.http.Client().Do(r)
			if err == nil {
				_, _ = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
			}
		}()
		run := <-agent.begun
		agent.say(t, "a")
		leave()
		<-run.Done()
		<-agent.closed
		<-gone
	}
}

// The client does not read, so a write blocks until its deadline.
func TestSlowClientIsDisconnected(t *testing.T) {
	agent := newLive()
	s := newSite(t, agent, func(c *Config) { c.WriteTimeout = 50 * time.Millisecond })
	resp := s.send(http.MethodPost, "/invoke", question, "Accept", "application/x-ndjson")
	defer func() { _ = resp.Body.Close() }()
	run := <-agent.begun
	e, err := folder.NewEvent("message", topics.Raw(`{"text":"`+strings.Repeat("x", 1<<20)+`"}`))
	require.NoError(t, err)
	for open := true; open; {
		select {
		case agent.items <- Item{Event: e}:
		case <-run.Done():
			open = false
		}
	}
	<-agent.closed
}

func TestTooManyRequestsGet503(t *testing.T) {
	agent := newLive()
	s := newSite(t, agent, func(c *Config) { c.Concurrency = 1 })
	r := s.read(t, "Accept", "application/x-ndjson")
	a := s.invoke(question)
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	require.Equal(t, "1", a.header.Get("Retry-After"))
	close(agent.items)
	r.rest()
	let := func() bool { return s.invoke(question).status == http.StatusOK }
	require.Eventually(t, let, time.Minute, time.Millisecond)
}
