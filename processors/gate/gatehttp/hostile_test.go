package gatehttp

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/internal/tableindex"
)

func TestCallersNeedTheRightOfTheirRequest(t *testing.T) {
	t.Parallel()
	f := newField(t, processors.AtLeastOnce)
	f.gates()
	d := f.door(Config{Door: auth.Door{Authenticate: callers}})
	f.ask("mira:1", "a")
	d.pending("mira:1", "a")
	for _, c := range []struct {
		method, path, body string
		rights             string // all but the right that the request needs
	}{
		{"GET", "/api/gates?session_id=mira:1", "", "write,answer,control"},
		{"GET", "/api/gates?status=pending", "", "write,answer,control"},
		{"GET", "/api/gates/a", "", "write,answer,control"},
		{"POST", "/api/gates/a/decision", approve, "read,write,control"},
		{"POST", "/api/gates/none/decision", approve, "read,write,control"},
		{"GET", "/api/gates/grants", "", "read,write,answer"},
		{"GET", "/api/gates/grants?session_id=mira:1", "", "read,write,answer"},
		{"DELETE", "/api/gates/grants/a", "", "read,write,answer"},
		{"DELETE", "/api/gates/grants/a?session_id=mira:1", "", "read,write,answer"},
	} {
		require.Equal(t, 401, d.do(c.method, c.path, c.body).status, c.path)
		require.Equal(t, 401, d.do(c.method, c.path, c.body, as("mira")).status, c.path)
		require.Equal(t, 403, d.do(c.method, c.path, c.body, as("mira "+c.rights+" *")).status, c.path)
	}
	require.Equal(t, 200, d.do("POST", "/api/gates/a/decision", approve, as("mira answer {user}:*")).status)
}

// A caller must not learn which gates other sessions have.
func TestGatesOfOtherSessionsAreAnsweredLikeUnknownOnes(t *testing.T) {
	t.Parallel()
	f := newField(t, processors.AtLeastOnce)
	f.gates()
	d := f.door(Config{Door: auth.Door{Authenticate: callers}})
	f.ask("mira:1", "a")
	f.ask("otto:1", "b")
	f.ask("otto:2", "c")
	d.pending("mira:1", "a")
	d.pending("otto:1", "b")
	d.pending("otto:2", "c")
	const otto = as("otto read,answer,control {user}:*")
	for _, method := range []string{"GET", "POST"} {
		path, body := "", ""
		if method == "POST" {
			path, body = "/decision", approve
		}
		foreign, unknown := d.do(method, "/api/gates/a"+path, body, otto), d.do(method, "/api/gates/none"+path, body, otto)
		require.Equal(t, 404, foreign.status)
		foreign.header.Del("Date")
		unknown.header.Del("Date")
		require.Equal(t, unknown, foreign)
	}
	require.Contains(t, d.seen.take(), "refuse 403   otto", "the audit shows the attempt")
	ids, _ := d.do("GET", "/api/gates?status=pending", "", otto).listed(t)
	require.Equal(t, []string{"b", "c"}, ids)
	ids, next := d.do("GET", "/api/gates?status=pending&limit=1", "", otto).listed(t)
	require.Equal(t, []string{"b"}, ids)
	ids, next = d.do("GET", "/api/gates?status=pending&limit=1&after="+next, "", otto).listed(t)
	require.Equal(t, []string{"c"}, ids)
	require.Empty(t, next)
	ids, next = d.do("GET", "/api/gates?status=pending&limit=1", "", as("mira read {user}:*")).listed(t)
	require.Equal(t, []string{"a"}, ids)
	require.Empty(t, next, "there are more, of others")
	for _, path := range []string{"/api/gates?session_id=mira:1", "/api/gates?session_id=mira:404", "/api/gates/grants?session_id=mira:1"} {
		require.Equal(t, 403, d.do("GET", path, "", otto).status, "whether it has gates or not")
	}

	// What counts in all sessions needs the permission to use all of them.
	require.Equal(t, 403, d.do("POST", "/api/gates/b/decision", `{"verdict":"approve","scope":"agent"}`, otto).status)
	require.Equal(t, 403, d.do("GET", "/api/gates/grants", "", otto).status)
	require.Equal(t, 403, d.do("DELETE", "/api/gates/grants/b", "", otto).status)
	require.Equal(t, 403, d.do("POST", "/api/gates/b/decision", `{"verdict":"approve","scope":"agent"}`, as("boss read,answer *")).status)
	require.Equal(t, 200, d.do("POST", "/api/gates/b/decision", `{"verdict":"approve","scope":"agent"}`, as("boss answer,control *")).status)
}

func TestHostileRequestsAreRefused(t *testing.T) {
	t.Parallel()
	f := newField(t, processors.AtLeastOnce)
	f.gates()
	d := f.door(Config{Door: auth.Door{Authenticate: callers, BodyLimit: 1000, Origins: []string{"https://chat.example"}, Headers: []string{"Authorization"}}})
	const mira = as("mira all *")
	f.ask("s", "a")
	d.pending("s", "a")
	const decision = "/api/gates/a/decision"
	long := strings.Repeat("x", 300)
	for _, c := range []struct {
		name, method, path, body string
		headers                  []any
		want                     int
	}{
		{"large body", "POST", decision, `{"verdict":"deny","reason":"` + strings.Repeat("x", 1000) + `"}`, nil, 413},
		{"empty body", "POST", decision, ``, []any{"Content-Type: application/json"}, 400},
		{"form", "POST", decision, approve, []any{"Content-Type: text/plain"}, 415},
		{"page of another origin", "POST", decision, approve, []any{"Origin: https://evil.example", "Sec-Fetch-Site: cross-site"}, 403},
		{"control characters in the key", "POST", decision, approve, []any{"Idempotency-Key: a\u0085b"}, 400},
		{"long key", "POST", decision, approve, []any{"Idempotency-Key: " + long}, 400},
		{"bad wait", "POST", decision + "?wait=soon", approve, nil, 400},
		{"negative wait", "GET", "/api/gates/a?wait=-1s", "", nil, 400},
		{"method", "PUT", decision, approve, nil, 405},
		{"decision by GET", "GET", decision, "", nil, 405},
		{"long id", "GET", "/api/gates/" + long, "", nil, 404},
		{"long id of a decision", "POST", "/api/gates/" + long + "/decision", approve, nil, 404},
		{"id with control characters", "GET", "/api/gates/%00%0a", "", nil, 404},
		{"id that is no UTF-8", "GET", "/api/gates/%ff", "", nil, 404},
		{"path", "GET", "/api/gates/a/../a", "", nil, 404},
		{"prefix", "GET", "/api/gatesx", "", nil, 404},
		{"session with a control character", "GET", "/api/gates?session_id=%0a", "", nil, 400},
		{"status", "GET", "/api/gates?session_id=s&status=approved", "", nil, 400},
		{"everything", "GET", "/api/gates", "", nil, 400},
		{"wait for everything", "GET", "/api/gates?status=pending&wait=1s", "", nil, 400},
		{"limit", "GET", "/api/gates?status=pending&limit=0", "", nil, 400},
		{"after", "GET", "/api/gates?status=pending&after=x", "", nil, 400},
		{"unknown grant", "DELETE", "/api/gates/grants/none", "", nil, 404},
		{"unknown grant of a session", "DELETE", "/api/gates/grants/none?session_id=s", "", nil, 404},
		{"target", "GET", "/api/gates?session_id=" + strings.Repeat("x", 9000), "", nil, 414},
	} {
		g := d.do(c.method, c.path, c.body, append([]any{mira}, c.headers...)...)
		require.Equal(t, c.want, g.status, "%s: %s", c.name, g.body)
	}
	require.Equal(t, 1, d.index.Len())
	open := f.door(Config{})
	open.pending("s", "a")
	require.Equal(t, 415, open.do("POST", decision, approve, "Content-Type: text/plain").status, "also without authentication")
	require.Equal(t, 415, open.do("POST", decision, approve, "Content-Type: ").status)
	preflight := d.do("OPTIONS", decision, "", "Origin: https://chat.example")
	require.Equal(t, 204, preflight.status)
	require.Equal(t, "https://chat.example", preflight.header.Get("Access-Control-Allow-Origin"))
	require.Empty(t, d.do("OPTIONS", decision, "", "Origin: https://evil.example").header.Get("Access-Control-Allow-Origin"))
}

func TestCallerAndSessionHaveLimits(t *testing.T) {
	t.Parallel()
	f := newField(t, processors.AtLeastOnce)
	f.gates()
	d := f.door(Config{Door: auth.Door{Authenticate: callers, Limits: auth.Limits{Session: auth.Share{Open: 1, PerSecond: 1, Burst: 2}}}})
	f.ask("s", "a")
	f.ask("u", "b")
	d.pending("s", "a")
	d.pending("u", "b")
	const mira = as("mira all *")
	for _, want := range []int{200, 200, 429} { // the clock stands still
		g := d.do("GET", "/api/gates/a", "", mira)
		require.Equal(t, want, g.status)
		require.Equal(t, want == http.StatusTooManyRequests, g.header.Get("Retry-After") != "")
	}
	require.Equal(t, 200, d.do("GET", "/api/gates/b", "", mira).status, "another session")
}

func TestApprovalsForLaterRequestsAreListedAndRevoked(t *testing.T) {
	t.Parallel()
	f := newField(t, processors.AtLeastOnce)
	f.gates()
	d := f.door(Config{Door: auth.Door{Authenticate: callers, Limits: auth.Limits{Session: auth.Share{PerSecond: 10_000, Burst: 10_000}}}})
	const boss = as("boss all *")
	for _, scope := range []string{"session", "agent"} {
		path := ""
		if scope == "session" {
			path = "?session_id=s"
		}
		id := scope + "-1"
		f.ask("s", id)
		d.pending("s", id)
		require.Equal(t, 200, d.do("POST", "/api/gates/"+id+"/decision", `{"verdict":"approve","scope":"`+scope+`"}`, boss).status)
		list := func() string { return d.do("GET", "/api/gates/grants"+path, "", boss).body }
		require.Eventually(t, func() bool { return strings.Contains(list(), `"grant_id":"`+id+`"`) }, waitLimit, 10*time.Millisecond)
		for _, want := range []string{`"scope":"` + scope + `"`, `"tool":"pay"`, `"by":"boss"`, `"expires_at":"2`} {
			require.Contains(t, list(), want)
		}

		// It approves later requests, until it is revoked. The group sees a grant of the agent some milliseconds later.
		n := 1
		askUntil := func(granted bool) {
			for last := !granted; last != granted; n++ {
				require.Less(t, n, 1000)
				again := fmt.Sprint(scope, "-again-", n)
				f.ask("s", again)
				last = d.known(again, boss).Outcome != nil
			}
		}
		askUntil(true)
		revoked := d.do("DELETE", "/api/gates/grants/"+id+path, "", boss)
		require.Equal(t, 202, revoked.status, revoked.body)
		require.Eventually(t, func() bool { return list() == `{"grants":[]}` }, waitLimit, 10*time.Millisecond)
		require.Equal(t, 404, d.do("DELETE", "/api/gates/grants/"+id+path, "", boss).status)
		askUntil(false)
	}
	require.Contains(t, d.seen.take(), "revoke 202 s session-1 boss")
	require.Contains(t, d.seen.take(), "revoke 202  agent-1 boss")
}

// known blocks until the index has a gate.
func (d *doorway) known(id string, who as) gate.View {
	d.t.Helper()
	require.Eventually(d.t, func() bool {
		_, ok := d.index.sessionOf(id)
		return ok
	}, waitLimit, 5*time.Millisecond)
	return d.do("GET", "/api/gates/"+id, "", who).view(d.t)
}

// The table of standing approvals is followed on its own, and can be read later than the gates: right after a start a request waits.
func TestRequestWaitsForTheStandingApprovals(t *testing.T) {
	t.Parallel()
	f := newField(t, processors.AtLeastOnce)
	f.gates()
	d := f.door(Config{Door: auth.Door{Authenticate: callers}})
	late := &tableindex.Source{Topics: d.index.standing.Topics, Handle: d.index.onGrants}
	follows := tableindex.New(ErrConfig, ErrNotReady, late)
	d.index.standing = late
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- follows.Run(ctx, f.brokers, zap.NewNop(), nil) }()
	require.Eventually(t, func() bool { return late.Follower() != nil }, waitLimit, time.Millisecond)
	require.Equal(t, 404, d.do("DELETE", "/api/gates/grants/none", "", as("boss all *")).status)
	cancel()
	require.NoError(t, <-ran)
}
