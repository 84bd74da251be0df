package invoke

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/fold/folder"
)

// byCookie authenticates a user by the cookie "user", as Agenta's web client does.
func byCookie(r *http.Request) (auth.Caller, error) {
	c, err := r.Cookie("user")
	if err != nil {
		return auth.Caller{}, err
	}
	return auth.Caller{UserID: c.Value}, nil
}

func TestAcceptHeaderOfAMegabyteAllocatesLittle(t *testing.T) {
	header := strings.Repeat(",", 1<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ParseAccept(header)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

func TestHugeHeadersAreRefusedBeforeAuthentication(t *testing.T) {
	var asked atomic.Bool
	s := newSite(t, scripted(t, hello), func(c *Config) {
		c.Authenticate = func(*http.Request) (auth.Caller, error) {
			asked.Store(true)
			return auth.Caller{}, errors.New("no")
		}
	})
	for _, name := range []string{
		"Accept", HeaderLastEvent, headerIdempotency, headerBaggage, headerParent, HeaderSession, HeaderFormat, HeaderControl,
		HeaderTrace, "Origin", "Authorization", "Cookie", "Content-Type", "Unknown",
	} {
		require.Equal(t, 431, s.invoke(`{}`, name, strings.Repeat(",", 100_000)).status, name)
	}
	require.False(t, asked.Load())
}

func TestCrossSiteRequestsRunNothing(t *testing.T) {
	agent := scripted(t, hello)
	s := newSite(t, agent, func(c *Config) { c.Authenticate, c.Origins = byCookie, []string{"https://app.example", "*"} })
	for _, evil := range [][]string{
		{"Origin", "https://evil.example", "Content-Type", "text/plain"},
		{"Origin", "https://evil.example", "Content-Type", ""},
		{"Origin", "https://evil.example"},
		{"Origin", "null"},
		{"Sec-Fetch-Site", "same-site"},
	} {
		require.Equal(t, 403, s.invoke(question, append(evil, "Cookie", "user=victim")...).status, evil)
	}
	for _, kind := range []string{"", "text/plain", "multipart/form-data"} {
		require.Equal(t, 415, s.invoke(question, "Cookie", "user=victim", "Content-Type", kind).status, kind)
	}
	require.Empty(t, agent.requests)
	require.Equal(t, 200, s.invoke(question, "Cookie", "user=victim", "Origin", "https://app.example").status)
}

func TestScriptsOfNamedOriginsMaySendCookies(t *testing.T) {
	s := newSite(t, scripted(t, hello), func(c *Config) {
		c.Authenticate, c.Origins = byCookie, []string{"https://app.example", "https://two.example"}
	})
	for _, origin := range []string{"https://app.example", "https://two.example"} {
		a := s.invoke(question, "Cookie", "user=mira", "Origin", origin, "Sec-Fetch-Site", "cross-site")
		require.Equal(t, 200, a.status)
		require.Equal(t, origin, a.header.Get("Access-Control-Allow-Origin"))
		require.Equal(t, "true", a.header.Get("Access-Control-Allow-Credentials"))
		require.Equal(t, "Origin", a.header.Get("Vary"))
	}
	require.Empty(t, s.invoke(question, "Cookie", "user=mira").header.Get("Access-Control-Allow-Origin"))
}

func TestOpenDoorRunsNothingForPagesOfOtherOrigins(t *testing.T) {
	agent := scripted(t, hello)
	s := newSite(t, agent)
	require.Equal(t, 403, s.invoke(question, "Origin", "https://any.example").status)
	require.Equal(t, 415, s.invoke(question, "Content-Type", "").status)
	require.Equal(t, 415, s.invoke(question, "Content-Type", "text/plain").status)
	require.Empty(t, agent.requests)
	s = newSite(t, scripted(t, hello), func(c *Config) { c.Origins = []string{"*"} })
	require.Equal(t, 200, s.invoke(question, "Origin", "https://any.example").status)
}

func TestSessionThatIsFloodedDelaysOnlyItself(t *testing.T) {
	agent := newLive()
	s := newSite(t, agent, func(c *Config) { c.Authenticate, c.Limits = byCookie, auth.Limits{Session: auth.Share{Open: 1}} })
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	open := s.sendUntil(ctx, http.MethodPost, "/invoke", `{"session_id":"one"}`, "Accept", "text/event-stream", "Cookie", "user=mira")
	defer func() { _ = open.Body.Close() }()
	require.Equal(t, 200, open.StatusCode)
	second := s.invoke(`{"session_id":"one"}`, "Accept", "text/event-stream", "Cookie", "user=mira")
	require.Equal(t, "1", second.header.Get("Retry-After"))
	require.Equal(t, 429, second.status)
	other := s.sendUntil(ctx, http.MethodPost, "/invoke", `{"session_id":"two"}`, "Accept", "text/event-stream", "Cookie", "user=mira")
	defer func() { _ = other.Body.Close() }()
	require.Equal(t, 200, other.StatusCode)
	leave()
	require.Eventually(t, func() bool {
		again := s.sendUntil(t.Context(), http.MethodPost, "/invoke", `{"session_id":"one","flags":{"force":true}}`, "Cookie", "user=mira")
		defer func() { _ = again.Body.Close() }()
		return again.StatusCode != 429
	}, time.Minute, time.Millisecond, "a stream that has ended frees its place")
}

func TestCallerCannotFillABuffer(t *testing.T) {
	block := make(chan struct{})
	agent := AgentFunc(func(context.Context, Request) (Stream, error) { return &blocked{block}, nil })
	b := newBuffered(t, agent, func(c *BufferConfig) {
		c.Turns, c.TurnBytes, c.Bytes, c.CallerTurns, c.SessionTurns = 100, 1<<20, 100<<20, 3, 2
	})
	begin := func(caller, session, trace string) error {
		_, err := b.Invoke(t.Context(), Request{SessionID: session, callerKey: caller, Trace: Trace{TraceID: trace}})
		return err
	}
	require.NoError(t, begin("mallory", "one", "1"))
	require.NoError(t, begin("mallory", "one", "2"))
	require.ErrorIs(t, begin("mallory", "one", "3"), errShare, "the session's share")
	require.NoError(t, begin("mallory", "two", "4"))
	require.ErrorIs(t, begin("mallory", "three", "5"), errShare, "the caller's share")
	require.NoError(t, begin("mira", "three", "6"))

	close(block)
	b.runs.Wait()
	require.NoError(t, begin("mallory", "one", "7"), "in place of a turn that has ended")
	for trace, want := range map[string]error{"1": ErrGone, "2": nil, "7": nil} {
		_, err := b.Resume(t.Context(), Request{SessionID: "one"}, EventID{trace + "-", 1, 0})
		require.ErrorIs(t, err, want, trace)
	}
}

// blocked is a stream without events until it is released.
type blocked struct{ release chan struct{} }

func (b *blocked) Next(ctx context.Context) (Item, error) {
	select {
	case <-b.release:
		return Item{}, io.EOF
	case <-ctx.Done():
		return Item{}, ctx.Err()
	}
}

func (*blocked) End() folder.End { return folder.End{} }
func (*blocked) Close() error    { return nil }

func TestAuditNamesTheTurn(t *testing.T) {
	var events []auth.AuditEvent
	s := newSite(t, scripted(t, hello), func(c *Config) {
		c.Authenticate, c.Audit = byCookie, func(e auth.AuditEvent) { events = append(events, e) }
	})
	s.invoke(`{"session_id":"s"}`, "Cookie", "user=mira")
	s.invoke(`{"session_id":"s"}`, "Traceparent", "00-"+traceID+"-"+spanID+"-01")
	require.Len(t, events, 2)
	require.Equal(t, auth.AuditEvent{
		Door: "invoke", Action: auth.AuditWrite, Subject: "mira", Session: "s", RequestID: traceID, Status: 200,
		At: events[0].At, Address: "127.0.0.1",
	}, events[0])
	require.Equal(t, auth.AuditRefuse, events[1].Action)
	require.Equal(t, 401, events[1].Status)
	require.Contains(t, events[1].RequestID, traceID)
}
