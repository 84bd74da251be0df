package peerhttp

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/topics"
)

// raw sends bytes and returns the answer.
func (d *rig) raw(text string) string {
	d.t.Helper()
	c, err := net.Dial("tcp", d.http.Listener.Addr().String())
	require.NoError(d.t, err)
	defer func() { _ = c.Close() }()
	_, err = io.WriteString(c, text)
	require.NoError(d.t, err)
	require.NoError(d.t, c.SetReadDeadline(time.Now().Add(waitLimit)))
	answer, err := io.ReadAll(c)
	require.NoError(d.t, err)
	return string(answer)
}

func TestHugeHeadersAreRefusedBeforeAnythingIsRead(t *testing.T) {
	asked := false
	d := closedRig(t, func(c *Config) {
		c.Authenticate = func(*http.Request) (auth.Caller, error) {
			asked = true
			return auth.Caller{}, auth.ErrNoCredential
		}
	})
	for _, name := range []string{"Authorization", "Prefer", "Cookie", "Accept", "Content-Type", "Origin", "X-Request-Id"} {
		for _, path := range []string{DelegatePath, ProxyPath, TasksPath + "t", CardPath} {
			g := d.do("POST", path, "{}", name+": "+strings.Repeat(",", 100_000))
			require.Equal(t, []any{431, "headers_too_large"}, []any{g.status, g.fault(t).Code}, "%s %s", name, path)
		}
	}
	g := d.delegate("{}", "Authorization: Bearer "+strings.Repeat("x", 9_000))
	require.Equal(t, []any{401, "missing_token"}, []any{g.status, g.fault(t).Code}, "larger than a token, and not too large for a header")
	g = d.do("POST", DelegatePath+"?"+strings.Repeat("x", 9_000), "{}")
	require.Equal(t, []any{414, "target_too_long"}, []any{g.status, g.fault(t).Code})
	require.False(t, asked)
	require.Empty(t, d.group.kinds())
}

func TestSlowBodyGivesItsSlotBack(t *testing.T) {
	d := newRig(t, func(c *Config) { c.Limits = auth.Limits{BodyRate: 1 << 20, BodyIdle: 100 * time.Millisecond} })
	for _, path := range []string{DelegatePath, ProxyPath} {
		answer := d.raw("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + t2 + "\r\nContent-Length: 100\r\n\r\n{")
		require.Contains(t, answer, "408 Request Timeout")
		require.Contains(t, answer, "slow_body")
	}
	require.Zero(t, d.handler.slots.len())
	require.Equal(t, []string{"slow_body"}, d.group.refused())
	require.Equal(t, "partner-b", d.group.events()[0].InboundID)
}

func TestBodyOfUnknownLengthIsLimited(t *testing.T) {
	d := newRig(t)
	chunk := fmt.Sprintf("%x\r\n%s\r\n", 1000, strings.Repeat(" ", 1000))
	answer := d.raw("POST " + DelegatePath + " HTTP/1.1\r\nHost: x\r\n" + t2 + "\r\nTransfer-Encoding: chunked\r\n\r\n" +
		strings.Repeat(chunk, peerwire.MaxBody/1000+1))
	require.Contains(t, answer, "413 Request Entity Too Large")
	require.Zero(t, d.handler.slots.len())
}

// events collects the operator's audit.
type events struct {
	mu   sync.Mutex
	list []auth.AuditEvent
}

func (e *events) add(a auth.AuditEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, a)
}

func (e *events) all() []auth.AuditEvent {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.list
}

func TestFloodOfWrongTokens(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	seen := &events{}
	d := newRig(t, func(c *Config) { c.Logger, c.Audit = zap.New(core), seen.add })
	require.Equal(t, 400, d.delegate("{", t2).status)
	require.Equal(t, 403, d.delegate(requestOf("t"), t3).status)
	d.clock.Advance(time.Second)
	known := len(d.group.events())
	var wrong atomic.Int64 // tokens that were checked
	flood := func(n int) {
		var running sync.WaitGroup
		for worker := range 10 {
			running.Go(func() {
				for i := range n / 10 {
					token := fmt.Sprintf("Authorization: Bearer stolen-%d-%d", worker, i)
					if g, err := d.try(t.Context(), "POST", DelegatePath, "{", token); err != nil || g.status != 401 && (g.status != 429 || g.header.Get("Retry-After") == "") {
						t.Errorf("%v %v", g, err)
					} else if g.status == 401 {
						wrong.Add(1)
					}
				}
			})
		}
		running.Wait()
	}
	flood(1000)
	require.GreaterOrEqual(t, wrong.Load(), int64(50))
	require.LessOrEqual(t, wrong.Load(), int64(60), "an address may try some tokens, not all")
	require.Len(t, d.group.events(), known+10, "records of one second")
	require.Empty(t, d.handler.slots.taken)
	require.Len(t, seen.all(), 1001)
	require.Zero(t, d.handler.peers.Len())
	d.clock.Advance(100 * time.Millisecond)
	flood(10)
	require.Len(t, d.group.events(), known+11)
	omitted := logs.FilterMessage("peer door refused requests without a record of each").All()
	require.Len(t, omitted, 1)
	require.Equal(t, int64(990), omitted[0].ContextMap()["omitted"])
	for _, r := range d.group.events()[known:] {
		require.Contains(t, []string{"unknown_token", "rate_limit"}, r.Code)
		require.Empty(t, r.InboundID)
	}

	// A peer that is refused often does not hide another one. Peers that were here before are not kept out, new ones are.
	for range 20 {
		require.Equal(t, 400, d.delegate("{", t2).status)
	}
	require.Equal(t, 403, d.delegate(requestOf("t"), t3).status)
	require.Equal(t, 429, d.delegate("{", t4).status)
	require.Equal(t, 429, d.do("GET", TasksPath+"t", "", t4).status)
	byLabel := map[string]int{}
	for _, r := range d.group.events()[known:] {
		byLabel[r.InboundID]++
	}
	require.Equal(t, map[string]int{"": 11, "partner-b": 10, "partner-c": 1}, byLabel)
	d.clock.Advance(time.Minute)
	require.Equal(t, 400, d.delegate("{", t4).status, "after a while")
	for _, entry := range logs.All() {
		require.NotContains(t, fmt.Sprint(entry.Message, entry.ContextMap()), "stolen")
	}
}

func TestRefusedBucketsAreBounded(t *testing.T) {
	f := newRefusals(1)
	for i := range 3 * maxBuckets {
		_, ok := f.take(fmt.Sprint(i), noon)
		require.True(t, ok)
	}
	require.LessOrEqual(t, len(f.buckets), maxBuckets)
}

func TestRefusalsOfTheAudit(t *testing.T) {
	d := newRig(t, func(c *Config) { c.AuditAgent, c.Concurrency = "front", 8 })
	d.configure(strings.Replace(usual, `"inboundMaxConcurrent":4`, `"inboundMaxConcurrent":1`, 1))
	d.delegate(requestOf("t", `,"agentId":"none","model":"m","parentRunId":"r","parentSessionId":"s"`), t2)
	require.Equal(t, topics.PeerAudit{
		Event: topics.PeerRefused, TaskID: "t", InstanceID: "a-1", AtMS: noon.UnixMilli(), ParentRunID: "r", ParentSessionID: "s",
		ParentInstanceID: "hq-1", InboundID: "partner-b", AgentID: "none", Model: "m", ContentLength: 14, Code: "unknown_agent", HTTPStatus: 404,
	}, d.group.events()[0])
	first := d.later(t.Context(), "POST", DelegatePath, requestOf("t"), t2)
	d.commanded(topics.PeerRun, 1)
	d.delegate(requestOf("u"), t2)
	d.group.finish("partner-b", "t", "")
	<-first
	require.Equal(t, []string{"unknown_agent", "concurrency_limit"}, d.group.refused())
	d.group.set(func(g *group) { g.err = processors.ErrTooLarge })
	g := d.delegate(requestOf("v"), t2)
	require.Equal(t, []any{413, "too_large"}, []any{g.status, g.fault(t).Code}, "no record of it can be written, and it is refused")
}

func TestLimitsOfCallersAndRequests(t *testing.T) {
	d := newRig(t, func(c *Config) {
		c.Concurrency = 2
		c.Limits = auth.Limits{Caller: auth.Share{PerSecond: 1, Burst: 2}, Session: auth.Share{PerSecond: 1, Burst: 1}}
	})
	d.group.reply = succeed
	for _, want := range []int{200, 200, 429} {
		g := d.delegate(requestOf("t"), t2)
		require.Equal(t, want, g.status)
		if want == 429 {
			require.Equal(t, []string{"rate_limit", "1"}, []string{g.fault(t).Code, g.header.Get("Retry-After")})
		}
	}
	require.Equal(t, 429, d.do("GET", TasksPath+"t", "", t2).status)
	require.Equal(t, 200, d.delegate(requestOf("t"), t4).status, "another label")
	require.Equal(t, 200, d.do("GET", CardPath, "").status)
	require.Zero(t, d.handler.slots.len())

	d = newRig(t, func(c *Config) { c.Concurrency = 1 })
	first := d.later(t.Context(), "POST", DelegatePath, requestOf("t"), t2)
	d.commanded(topics.PeerRun, 1)
	for _, path := range []string{DelegatePath, TasksPath + "t"} {
		g := d.do("POST", path, "{}", t2)
		require.Equal(t, []any{503, "unavailable", "1"}, []any{g.status, g.fault(t).Code, g.header.Get("Retry-After")})
	}
	d.group.set(func(g *group) { g.reply = succeed })
	require.Equal(t, 200, d.proxy(task1).status, "the callers of this instance have places of their own")
	d.group.finish("partner-b", "t", "")
	require.Equal(t, 200, (<-first).status)
}

func TestOperatorsAuditNamesPeersAndCallers(t *testing.T) {
	seen := &events{}
	d := closedRig(t, func(c *Config) { c.Audit, c.Authenticate = seen.add, callers })
	d.group.reply = succeed
	d.delegate(requestOf("t"), t2)
	d.delegate(requestOf("u"), t3)
	d.delegate(requestOf("u"), "X-Request-Id: edge-7")
	d.proxy(task1, mira)
	d.proxy(task1)
	type line struct {
		door, subject, session, request string
		action                          auth.AuditAction
		status                          int
		reason                          string
	}
	var lines []line
	for _, e := range seen.all() {
		require.Equal(t, "front", e.Agent)
		require.Equal(t, noon, e.At)
		lines = append(lines, line{e.Door, e.Subject, e.Session, e.RequestID, e.Action, e.Status, e.Reason})
	}
	require.Equal(t, []line{
		{"peer", "peer partner-b", peerwire.SessionID("partner-b", "t"), "t", auth.AuditWrite, 200, ""},
		{"peer", "peer partner-c", "", "", auth.AuditRefuse, 403, "agent_forbidden"},
		{"peer", "", "", "edge-7", auth.AuditRefuse, 401, "missing_token"},
		{"peer-proxy", "mira", d.group.sessions[1], "t", auth.AuditWrite, 200, ""},
		{"peer-proxy", "", "", "", auth.AuditRefuse, 401, "Unauthorized"},
	}, lines)
}

func TestRepliesThatCannotBeReadAreIgnored(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	r, err := NewReplies("front", Config{Door: auth.Door{Logger: zap.New(core)}})
	require.NoError(t, err)
	w, stop := r.wait(task{session: "s", inboundID: "b", taskID: "t"}, "h")
	for _, value := range []string{
		"", "{", `{"state":"done"}`, `{"task_id":"t","inbound_id":"b","state":"done","hash":"other"}`,
		`{"task_id":"t","inbound_id":"b","state":"done","hash":"h","waiter":"another"}`,
		`{"task_id":"t","peer_id":"b","state":"done","hash":"h"}`, `{"task_id":"t","inbound_id":"b","state":"conflict"}`,
	} {
		r.onRecord(processors.Inbound{Key: []byte("s"), Value: []byte(value)})
	}
	r.onRecord(processors.Inbound{Key: []byte("s")})
	r.onRecord(processors.Inbound{Key: []byte("other"), Value: []byte(`{"task_id":"t","inbound_id":"b","state":"done","hash":"h"}`)})
	require.Empty(t, w.replies)
	require.Equal(t, 3, logs.Len())
	running := []byte(`{"task_id":"t","inbound_id":"b","state":"running","waiter":"` + w.id + `"}`)
	for range 5 {
		r.onRecord(processors.Inbound{Key: []byte("s"), Value: running})
	}
	for range 5 {
		r.onRecord(processors.Inbound{Key: []byte("s"), Value: []byte(`{"task_id":"t","inbound_id":"b","state":"done","hash":"h"}`)})
	}
	require.Equal(t, topics.PeerRunning, (<-w.replies).State)
	require.Equal(t, topics.PeerDone, (<-w.replies).State)
	require.Empty(t, w.replies)
	stop()
	require.Zero(t, r.waiters())
}
