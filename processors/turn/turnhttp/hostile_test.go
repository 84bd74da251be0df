package turnhttp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/turn/token"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
)

const waitLimit = time.Minute

// byCookie authenticates a user by the cookie "user", as a web application does.
func byCookie(r *http.Request) (auth.Caller, error) {
	c, err := r.Cookie("user")
	if err != nil {
		return auth.Caller{}, err
	}
	return auth.Caller{UserID: c.Value}, nil
}

// stalled opens connections that send a request except for its last byte.
func (s *fixture) stalled(n, size int, header string) {
	s.t.Helper()
	body := bytes.Repeat([]byte("x"), size-1)
	for range n {
		c, err := s.listener.DialContext(s.t.Context(), "tcp", "")
		require.NoError(s.t, err)
		s.t.Cleanup(func() { _ = c.Close() })
		_, err = fmt.Fprintf(c, "POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n", header, size)
		require.NoError(s.t, err)
		go func() { _, _ = c.Write(body) }() // fails if the door has refused the request
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestStalledBodiesOccupyBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused atomic.Int64
		s := newFixture(t, func(c *turnhttp.Config) {
			c.Authenticate = byCookie
			c.Audit = func(e auth.AuditEvent) {
				if e.Status == http.StatusTooManyRequests {
					refused.Add(1)
				}
			}
		})
		before := heap()
		s.stalled(200, 1<<20, "Cookie: user=mallory\r\n")
		// 16 MiB of one caller hold 15 bodies of 1 MiB at least, so that at most 185 are refused, and 32 do not fit if all double.
		require.Eventually(t, func() bool { return refused.Load() >= 150 }, waitLimit, 5*time.Millisecond)
		require.Less(t, int64(heap()-before), int64(64<<20))
	})
}

// Callers of an open door are told apart by their address only, which many can share.
func TestStalledBodiesOfStrangersGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t, func(c *turnhttp.Config) { c.Concurrency = 100 })
		before := heap()
		s.stalled(400, 1<<20, "")
		synctest.Wait()
		for range 20 {
			require.Equal(t, 200, s.chat(bodyWith(`"a":1`), "Content-Type", "application/json").status)
		}
		require.Less(t, int64(heap()-before), int64(64<<20))
	})
}

func TestUnauthenticatedBodiesAreNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t, func(c *turnhttp.Config) { c.Authenticate, c.Concurrency = byCookie, 4 })
		s.stalled(40, 1<<20, "")
		synctest.Wait()
		// With a slot each until their bodies have arrived, this would be refused.
		require.Equal(t, 200, s.chat(bodyWith(`"a":1`), "Cookie", "user=mira", "Content-Type", "application/json").status)
	})
}

func TestSlowBodyIsAnsweredWithATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t, func(c *turnhttp.Config) { c.Limits = auth.Limits{BodyRate: 1 << 20, BodyIdle: 100 * time.Millisecond} })
		c, err := s.listener.DialContext(t.Context(), "tcp", "")
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
		_, err = fmt.Fprintf(c, "POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
		require.NoError(t, err)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(waitLimit)))
		answer, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Contains(t, string(answer), "408 Request Timeout")
	})
}

func TestHugeHeadersAreRefusedBeforeAuthentication(t *testing.T) {
	asked := false
	s := newFixture(t, func(c *turnhttp.Config) {
		c.Authenticate = func(*http.Request) (auth.Caller, error) {
			asked = true
			return auth.Caller{}, errors.New("no")
		}
	})
	for _, name := range []string{
		"Accept", "Idempotency-Key", "Last-Event-Id", "Origin", "Authorization", "Cookie", "Content-Type", "X-Ag-Session-Id", "Unknown",
	} {
		g := s.chat("", name, strings.Repeat(",", 100_000))
		require.Equal(t, 431, g.status, name)
		require.Equal(t, 431, s.send(request{path: turnhttp.ToolResponsePath, headers: []string{name, strings.Repeat(",", 100_000)}}).status, name)
	}
	require.Equal(t, 414, s.send(request{path: turnhttp.ChatPath + "?" + strings.Repeat("x", 9000)}).status)
	require.False(t, asked)
}

func TestTooManyRequestsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t, func(c *turnhttp.Config) { c.Concurrency = 1 })
		s.publisher.gate = make(chan struct{})
		first := make(chan response, 1)
		go func() { first <- s.chat(`{"session_id":"s","content":"hi"}`) }()
		synctest.Wait() // it has the slot
		g := s.send(request{method: "GET", path: turnhttp.ChatPath})
		require.Equal(t, 503, g.status)
		require.Equal(t, "1", g.header.Get("Retry-After"))
		s.publisher.gate <- struct{}{}
		require.Equal(t, 200, (<-first).status)
	})
}

func TestCallersAndSessionsHaveLimitsOfTheirOwn(t *testing.T) {
	s := newFixture(t, func(c *turnhttp.Config) {
		c.Authenticate = byCookie
		c.Limits = auth.Limits{
			Caller: auth.Share{PerSecond: 1, Burst: 5}, Session: auth.Share{PerSecond: 1, Burst: 3},
		}
	})
	ask := func(user, session string) response {
		return s.chat(`{"session_id":"`+session+`","content":"hi"}`, "Cookie", "user="+user, "Content-Type", "application/json")
	}
	for range 3 {
		require.Equal(t, 200, ask("mallory", "flooded").status)
	}
	g := ask("mallory", "flooded")
	require.Equal(t, []any{429, "1"}, []any{g.status, g.header.Get("Retry-After")})
	require.Equal(t, 200, ask("mallory", "other").status, "only the flooded session waits")
	require.Equal(t, 429, ask("mallory", "third").status, "the caller has used its requests")
	require.Equal(t, 200, ask("mira", "mira").status, "another caller has not")
	s.clock.Advance(time.Second)
	require.Equal(t, 200, ask("mallory", "third").status)
}

func TestCallbacksOfASessionHaveTheLimitsOfACaller(t *testing.T) {
	s := newFixture(t, func(c *turnhttp.Config) { c.Limits = auth.Limits{Caller: auth.Share{PerSecond: 1, Burst: 1}} })
	call := func(session string) int {
		return s.callback("{}", token.Claims{SessionID: session, ToolUseID: "t", Expires: noon.Add(time.Hour)}).status
	}
	require.Equal(t, 202, call("one"))
	require.Equal(t, 429, call("one"))
	require.Equal(t, 202, call("two"))
}

func TestCrossSiteRequestsHaveNoEffect(t *testing.T) {
	s := newFixture(t, func(c *turnhttp.Config) {
		c.Authenticate, c.Origins = byCookie, []string{"https://app.example", "https://two.example"}
	})
	post := func(headers ...string) response {
		return s.chat(`{"session_id":"s","content":"wire 1000 EUR"}`, append([]string{"Cookie", "user=victim"}, headers...)...)
	}
	for _, evil := range [][]string{
		{"Origin", "https://evil.example", "Content-Type", "text/plain"},
		{"Origin", "https://evil.example", "Content-Type", "application/json"},
		{"Origin", "null", "Content-Type", "application/json"},
		{"Sec-Fetch-Site", "cross-site", "Content-Type", "application/json"},
	} {
		g := post(evil...)
		require.Equal(t, 403, g.status, evil)
		require.Empty(t, g.header.Get("Access-Control-Allow-Origin"))
	}
	for _, kind := range []string{"text/plain", "", "application/x-www-form-urlencoded", "application/json, text/plain"} {
		require.Equal(t, 415, post("Content-Type", kind).status, kind)
	}
	require.Empty(t, s.publisher.lines())
	for _, origin := range []string{"https://app.example", "https://two.example"} {
		g := post("Origin", origin, "Sec-Fetch-Site", "cross-site", "Content-Type", "application/json; charset=utf-8")
		require.Equal(t, 200, g.status)
		require.Equal(t, origin, g.header.Get("Access-Control-Allow-Origin"))
		require.Equal(t, "true", g.header.Get("Access-Control-Allow-Credentials"))
		require.Equal(t, "Origin", g.header.Get("Vary"))
	}
}

func TestPagesOfOtherOriginsCallAnOpenDoorOnlyIfTheyAreNamed(t *testing.T) {
	const hi = `{"session_id":"s","content":"hi"}`
	s := newFixture(t)
	require.Equal(t, 403, s.chat(hi, "Origin", "https://any.example").status)
	require.Equal(t, 415, s.chat(hi, "Content-Type", "text/plain").status)
	require.Equal(t, 415, s.chat(hi, "Content-Type", "").status)
	require.Empty(t, s.publisher.lines())
	s = newFixture(t, func(c *turnhttp.Config) { c.Origins = []string{"*"} })
	g := s.chat(hi, "Origin", "https://any.example")
	require.Equal(t, 200, g.status)
	require.Equal(t, "*", g.header.Get("Access-Control-Allow-Origin"))
	require.Empty(t, g.header.Get("Access-Control-Allow-Credentials"))
	require.Equal(t, 415, s.chat(hi, "Origin", "https://any.example", "Content-Type", "text/plain").status)
}

func TestSessionWithControlOrBidirectionalCharactersIsRefused(t *testing.T) {
	s := newFixture(t)
	for _, id := range []string{`a\n`, `a\u001b[2J`, `\u202ea`, `a\u2066b`, `a\u0085`, `a\u2028`} {
		require.Equal(t, 400, s.chat(`{"session_id":"`+id+`","content":"hi"}`).status, id)
	}
	require.Empty(t, s.publisher.lines())
	require.Equal(t, 200, s.chat(`{"session_id":"größe 7 日本 ✓","content":"hi"}`).status)
}

func TestAuditNamesCallerAndRequestAndNoContent(t *testing.T) {
	var mu sync.Mutex
	var events []auth.AuditEvent
	counts := &auth.AuditCounts{}
	s := newFixture(t, func(c *turnhttp.Config) {
		c.Authenticate = byCookie
		c.Audit = counts.Sink(func(e auth.AuditEvent) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, e)
		})
	})
	s.chat(bodyWith(`"request_id":"r-1"`), "Cookie", "user=mira", "Content-Type", "application/json")
	s.chat(bodyWith(`"request_id":"r-1"`), "X-Request-Id", "edge-7")
	s.callback(`"private"`, token.Claims{SessionID: "s", ToolUseID: "call-1", Expires: noon.Add(time.Hour)})
	s.send(request{path: turnhttp.ToolResponsePath, headers: []string{"Authorization", "Bearer forged"}})

	mu.Lock()
	defer mu.Unlock()
	for i := range events {
		require.Equal(t, noon, events[i].At)
		require.Equal(t, "127.0.0.1", events[i].Address)
		require.Equal(t, "pilot", events[i].Agent)
		events[i].At, events[i].Address, events[i].Agent = time.Time{}, "", ""
	}
	require.Equal(t, []auth.AuditEvent{
		{Door: "chat", Action: auth.AuditWrite, Subject: "mira", Session: "s", RequestID: "r-1", Status: 200},
		{Door: "chat", Action: auth.AuditRefuse, RequestID: "edge-7", Status: 401, Reason: "Unauthorized"},
		{Door: "callback", Action: auth.AuditAnswer, Subject: "callback s", Session: "s", RequestID: "call-1", Status: 202},
		{Door: "callback", Action: auth.AuditRefuse, Status: 401, Reason: "Malformed token"},
	}, events)
	require.Equal(t, map[auth.AuditCount]uint64{
		{Door: "chat", Action: auth.AuditWrite}: 1, {Door: "chat", Action: auth.AuditRefuse, Status: 401}: 1,
		{Door: "callback", Action: auth.AuditAnswer}: 1, {Door: "callback", Action: auth.AuditRefuse, Status: 401}: 1,
	}, counts.All())
}
