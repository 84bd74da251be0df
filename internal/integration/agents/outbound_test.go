package agents

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/peer/peerhttp"
	"github.com/turntable-streams/turntable/topics"
)

// fake is a peer that answers as a test says.
type fake struct {
	*httptest.Server
	mu    sync.Mutex
	posts []peerwire.Request
	auth  []string
}

// newFake starts a peer. Its card does not say that it is idempotent.
func newFake(t *testing.T, delegate func(w http.ResponseWriter, r *http.Request, req peerwire.Request)) *fake {
	t.Helper()
	f := &fake{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case peerhttp.CardPath:
			_, _ = w.Write(peerwire.Card{InstanceID: "fake-1", AppVersion: "1", Delegate: true}.Body())
		case peerhttp.DelegatePath:
			var raw strings.Builder
			buffer := make([]byte, 64<<10)
			for {
				n, err := r.Body.Read(buffer)
				raw.Write(buffer[:n])
				if err != nil {
					break
				}
			}
			req, refusal := peerwire.ReadRequest([]byte(raw.String()))
			if refusal != nil {
				t.Errorf("request: %v", refusal)
			}
			f.mu.Lock()
			f.posts, f.auth = append(f.posts, req), append(f.auth, r.Header.Get("Authorization"))
			f.mu.Unlock()
			delegate(w, r, req)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *fake) requests() []peerwire.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.posts
}

// answer is a peer that always answers the same. %s is the task ID.
func answer(status int, body string, headers ...string) func(http.ResponseWriter, *http.Request, peerwire.Request) {
	return func(w http.ResponseWriter, _ *http.Request, req peerwire.Request) {
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		if strings.Contains(body, "%s") {
			body = fmt.Sprintf(body, req.TaskID)
		}
		_, _ = w.Write([]byte(body))
	}
}

// stall is a peer that does not answer: not at all, or not to the end.
func stall(headers bool) func(http.ResponseWriter, *http.Request, peerwire.Request) {
	return func(w http.ResponseWriter, r *http.Request, _ peerwire.Request) {
		if headers {
			_, _ = w.Write([]byte(`{"taskId":`))
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}
}

const good = `{"taskId":"%s","peerInstanceId":"fake-1","status":"success","result":"42","later":{"a":1}}`

// What the peer or the network does, and what the caller of the proxy is told.
func TestOutboundRows(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name   string
		peer   func(http.ResponseWriter, *http.Request, peerwire.Request)
		status int
		code   string
		error  string
		more   map[string]any
		retry  string
	}{
		{name: "a reply with members that are not known", peer: answer(200, good), status: 200, more: map[string]any{"result": "42", "later": map[string]any{"a": 1.0}}},
		{
			name: "a reply that failed", peer: answer(200, strings.Replace(strings.Replace(good, "success", "error", 1), `"42"`, `null,"error":"no"`, 1)),
			status: 200, more: map[string]any{"status": "error", "error": "no"},
		},
		{name: "a reply that was rejected", peer: answer(200, strings.Replace(good, "success", "rejected", 1)), status: 200, more: map[string]any{"status": "rejected"}},
		{name: "400", peer: answer(400, `{"error":"bad fields"}`), status: 502, code: "peer_refused", error: "bad fields", more: map[string]any{"peerStatus": 400.0}},
		{name: "401", peer: answer(401, `{"error":"Unknown peer token."}`), status: 502, code: "peer_refused", error: "Unknown peer token.", more: map[string]any{"peerStatus": 401.0}},
		{name: "403", peer: answer(403, `{"error":"no"}`), status: 502, code: "peer_refused", error: "no", more: map[string]any{"peerStatus": 403.0, "peerError": "no"}},
		{name: "413", peer: answer(413, `{"error":"Request body too large."}`), status: 502, code: "peer_refused", error: "Request body too large."},
		{name: "500", peer: answer(500, `{"error":"boom"}`), status: 502, code: "peer_refused", error: "boom", more: map[string]any{"peerStatus": 500.0}},
		{name: "an error that is no JSON", peer: answer(404, `<html>`), status: 502, code: "peer_refused", error: "HTTP 404"},
		{name: "429", peer: answer(429, `{"error":"full"}`, "Retry-After: 7"), status: 503, code: "peer_busy", error: "full", retry: "7"},
		{name: "503", peer: answer(503, `{"error":"off"}`), status: 503, code: "peer_busy", error: "off", retry: "1"},
		{name: "a redirect is not followed", peer: answer(307, ``, "Location: http://127.0.0.1:1/"), status: 502},
		{name: "no JSON", peer: answer(200, `<html>`), status: 502, code: "malformed_reply", error: `Peer "client": malformed delegation response.`},
		{name: "a status that is not known", peer: answer(200, strings.Replace(good, "success", "maybe", 1)), status: 502, code: "malformed_reply"},
		{name: "the reply to another task", peer: answer(200, strings.Replace(good, "%s", "other", 1)), status: 502, code: "malformed_reply"},
		{name: "no peerInstanceId", peer: answer(200, `{"taskId":"%s","status":"success"}`), status: 502, code: "malformed_reply"},
		{name: "a reply that is too large", peer: answer(200, strings.Replace(good, "42", strings.Repeat("4", 2<<20), 1)), status: 200},
		{name: "no headers in time", peer: stall(false), status: 504, code: "timeout", more: map[string]any{"timeoutMs": 5000.0, "answered": false}},
		{name: "no end of the body in time", peer: stall(true), status: 504, code: "timeout", more: map[string]any{"timeoutMs": 5000.0, "answered": true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t, c.peer)
			w.peerOf(f.URL)
			id := w.task()
			timeout := `,"timeoutMs":60000`
			if c.status == 504 {
				timeout = `,"timeoutMs":5000`
			}
			g := w.proxy(id, "x", timeout)
			require.Equal(t, c.status, g.status, g.text)
			if c.status != 200 {
				require.Equal(t, []any{id, "client"}, []any{g.body["taskId"], g.body["peerId"]})
				require.NotEmpty(t, g.error())
			}
			if c.code != "" {
				require.Equal(t, c.code, g.code(), g.text)
			}
			if c.error != "" {
				require.Equal(t, c.error, g.error())
			}
			for name, want := range c.more {
				require.Equal(t, want, g.body[name], g.text)
			}
			require.Equal(t, c.retry, g.header.Get("Retry-After"))
			require.Len(t, f.requests(), 1, "the caller waits, so one attempt is made")
			require.Equal(t, []string{"Bearer T-hq"}, f.auth)
			end := topics.PeerSendFailed
			if c.status == 200 {
				end = topics.PeerAcknowledged
			}
			w.hq.audited(id, topics.PeerSent, end)
		})
	}
}

func TestOutboundChecks(t *testing.T) {
	w := newWorld(t)
	down := httptest.NewServer(nil)
	down.Close()
	f := newFake(t, answer(200, good))
	for _, c := range []struct {
		name      string
		configure func()
		request   request
		status    int
		code      string
	}{
		{"unknown peer", nil, w.forward("none", "t-1", "x"), 404, "unknown_peer"},
		{"a peer in another case", nil, w.forward("Client", "t-2", "x"), 404, "unknown_peer"},
		{"an agent that is not in the peer's list", nil, w.forward("strict", "t-3", "x", `,"agentId":"back"`), 403, "agent_forbidden"},
		{"no agent, with a list", nil, w.forward("strict", "t-4", "x"), 403, "agent_forbidden"},
		{"an agent in another case", nil, w.forward("strict", "t-5", "x", `,"agentId":"Front"`), 403, "agent_forbidden"},
		{"no connection", func() { w.peerOf(down.URL) }, w.forward("client", "t-6", "x"), 502, "unreachable"},
		{"disabled", func() { w.hq.configure(`{"enabled":false}`) }, w.forward("client", "t-7", "x"), 503, "disabled"},
		{"no content", nil, w.forward("client", "t-8", ""), 400, "invalid_request"},
		{"no peerId", nil, w.forward("", "t-8", "x"), 400, "invalid_request"},
		{"an agent of the list", func() { w.peerOf(f.URL) }, w.forward("strict", "t-9", "x", `,"agentId":" front "`), 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer w.reset()
			if c.configure != nil {
				c.configure()
			}
			g := w.do(c.request)
			require.Equal(t, c.status, g.status, g.text)
			if c.code != "" {
				require.Equal(t, c.code, g.code())
			}
		})
	}
	require.Len(t, f.requests(), 1)
	require.Equal(t, "front", f.requests()[0].AgentID)
	require.Empty(t, w.client.chain(), "the checks come before the network")
	for _, id := range []string{"t-1", "t-3", "t-6"} {
		w.hq.audited(id, topics.PeerSent, topics.PeerSendFailed)
	}
}

func TestCallerOfTheProxyDisconnects(t *testing.T) {
	w := newWorld(t)
	ctx, disconnect := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	id := w.task()
	go func() {
		_, err := try(ctx, w.forward("client", id, "wait"))
		ended <- err
	}()
	w.client.audited(id, topics.PeerReceived)
	disconnect()
	require.Error(t, <-ended)
	w.hq.audited(id, topics.PeerSent, topics.PeerSendFailed)
	w.client.audited(id, topics.PeerReceived, topics.PeerCompleted)
	require.Eventually(t, func() bool { return w.client.script.cancelled() == 1 }, waitLimit, 5*time.Millisecond, "the peer's turn is cancelled")
}
