package transport

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/peer"
)

// accepted answers 202 with a location.
func accepted(location string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if location != "" {
			w.Header().Set("Location", location)
		}
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"taskId":"t/9","status":"running"}`)
	}
}

func TestAcceptedTaskIsPolledUntilItHasEnded(t *testing.T) {
	for _, location := range []string{"tasks/t%2F9", "/base/api/peer/tasks/t%2F9", "own"} {
		p := newInstance(t)
		if location == "own" {
			location = p.base + "/api/peer/tasks/t%2F9"
		}
		polls := []http.HandlerFunc{
			accepted(""), answer(503, "away"), answer(500, "broken"), answer(429, ""), hangUp, answer(200, string(replyTo("t/9"))),
		}
		var n atomic.Int64
		p.delegate = accepted(location)
		p.tasks = func(w http.ResponseWriter, r *http.Request) {
			require.Equal(t, "/base/api/peer/tasks/t%2F9?wait=25s", r.URL.RequestURI())
			require.Equal(t, "Bearer "+token, r.Header.Get("Authorization"))
			polls[n.Add(1)-1](w, r)
		}
		e := exchange(t, p.sender(), attempt())
		require.False(t, e.failed, e.Failure)
		require.JSONEq(t, string(replyTo("t/9")), string(e.Reply))
		require.EqualValues(t, len(polls), n.Load())
		require.Equal(t, 1, p.count("POST"), "a task is not sent again while it is polled")
	}
}

func TestPollThatIsRefusedEndsTheAttempt(t *testing.T) {
	for status, want := range map[int]peerwire.Code{
		401: peerwire.CodePeerRefused, 403: peerwire.CodePeerRefused, 404: peerwire.CodeOutcomeUnknown, 302: peerwire.CodePeerRefused,
	} {
		p := newInstance(t)
		p.delegate, p.tasks = accepted("tasks/t%2F9"), answer(status, `{"error":"no"}`)
		e := exchange(t, p.sender(), attempt())
		require.Equal(t, []any{want, true, true, true, status}, []any{e.Code, e.Final, e.Answered, e.Reached, e.Status})
	}
	p := newInstance(t)
	p.delegate, p.tasks = accepted("tasks/t%2F9"), answer(200, string(replyTo("t-10")))
	require.Equal(t, peerwire.CodeMalformed, exchange(t, p.sender(), attempt()).Code)
}

// An operator replaces a token on both sides, or removes a peer, while a task runs.
func TestPollsFollowTheConfiguration(t *testing.T) {
	p := newInstance(t)
	var current atomic.Pointer[peer.Settings]
	current.Store(configured(p.base)())
	change := func(peers ...peer.Outbound) {
		current.Store(&peer.Settings{Enabled: true, InstanceID: "hq-1", Outbound: peers})
	}
	p.delegate = accepted("tasks/t%2F9")
	p.tasks = func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer "+token {
			change(peer.Outbound{ID: "a", BaseURL: p.base, Token: peer.NewSecret("T1-s3cret"), Timeout: limit})
			accepted("")(w, r)
			return
		}
		require.Equal(t, "Bearer T1-s3cret", r.Header.Get("Authorization"))
		answer(200, string(replyTo("t/9")))(w, r)
	}
	e := exchange(t, sender(t, current.Load), attempt())
	require.False(t, e.failed, e.Failure)

	for _, peers := range [][]peer.Outbound{nil, {{ID: "a", BaseURL: "http://other.example", Token: peer.NewSecret(token)}}} {
		current.Store(configured(p.base)())
		p.on(accepted("tasks/t%2F9"))
		polls := p.count("GET /api/peer/tasks")
		p.tasks = func(w http.ResponseWriter, r *http.Request) {
			change(peers...)
			accepted("")(w, r)
		}
		e := exchange(t, sender(t, current.Load), attempt())
		require.Equal(t, []any{peerwire.CodeUnknownPeer, true, true}, []any{e.Code, e.Final, e.Reached})
		require.Equal(t, polls+1, p.count("GET /api/peer/tasks"))
	}

	current.Store(configured(p.base)())
	p.tasks = func(w http.ResponseWriter, r *http.Request) {
		change(peer.Outbound{ID: "a", BaseURL: p.base, Token: peer.NewSecret("T1-s3cret"), Timeout: limit})
		if r.Header.Get("Authorization") == "Bearer "+token {
			accepted("")(w, r)
			return
		}
		answer(403, `{"error":"no `+r.Header.Get("Authorization")+`"}`)(w, r)
	}
	e = exchange(t, sender(t, current.Load), attempt())
	require.Equal(t, "no Bearer [secret]", e.Detail)
}

func TestPeerThatAsksToWaitForAYearIsAskedAfterAMinute(t *testing.T) {
	p := newInstance(t)
	p.tasks = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "31536000")
		answer(503, "")(w, r)
	}
	tr := p.sender()
	peer, _ := tr.peer("a")
	o, again := tr.ask(t.Context(), peer, "t/9", 1)
	require.Nil(t, o)
	require.Equal(t, time.Minute, again)
}

func TestDeadlineEndsPolling(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{"running": accepted(""), "silent": hang, "away": answer(503, "")} {
		t.Run(name, func(t *testing.T) {
			p := newInstance(t)
			ctx, expire := expiring(t)
			p.delegate = accepted("tasks/t%2F9")
			var polls atomic.Int64
			p.tasks = func(w http.ResponseWriter, r *http.Request) {
				if n := polls.Add(1); name == "silent" || n == 3 {
					expire()
				}
				handler(w, r)
			}
			e := exchangeIn(t, ctx, p.sender(), attempt())
			require.Equal(t, []any{peerwire.CodeTimeout, "timeout", false, true, true}, []any{e.Code, e.Reason, e.Final, e.Answered, e.Reached})
		})
	}
}

func TestLocationThatIsNotOfThePeerIsNotRequested(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("called") }))
	t.Cleanup(other.Close)
	p := newInstance(t)
	p.tasks = func(http.ResponseWriter, *http.Request) { t.Error("polled") }
	for _, location := range []string{
		"", other.URL + "/base/api/peer/tasks/t%2F9", "//" + other.Listener.Addr().String() + "/base/api/peer/tasks/t%2F9",
		"/api/peer/tasks/t%2F9", "/base/api/peer/tasks/../../../admin", "../../../admin", "/admin",
		strings.Replace(p.base, "http://", "http://user:pass@", 1) + "/api/peer/tasks/t%2F9",
		strings.Replace(p.base, "http://", "https://", 1) + "/api/peer/tasks/t%2F9", "javascript:alert(1)", "http://[::1", "%zz",
	} {
		p.on(accepted(location))
		e := exchange(t, p.sender(), attempt())
		require.Equal(t, []any{peerwire.CodeMalformed, true, true, 202}, []any{e.Code, e.Final, e.Reached, e.Status}, location)
	}
}

func TestDotsOfATaskIDAreNotAPath(t *testing.T) {
	require.Equal(t, "/api/peer/tasks/%2E%2E", taskPath(".."))
	require.Equal(t, "/api/peer/tasks/a%3Fb%23c%2F..", taskPath("a?b#c/.."))
}
