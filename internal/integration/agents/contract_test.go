package agents

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/peer/peerhttp"
	"github.com/turntable-streams/turntable/topics"
)

// The tests that came with the protocol, between two instances.
func TestProtocolsOwnTests(t *testing.T) {
	w := newWorld(t)
	at := w.client.doors[0].URL
	for _, c := range []struct {
		name string
		test func(t *testing.T)
	}{
		{"the card has the protocol and the instance, and delegates if enabled", func(t *testing.T) {
			g := w.do(request{method: http.MethodGet, url: at + peerhttp.CardPath})
			card, err := peerwire.ReadCard([]byte(g.text))
			require.NoError(t, err)
			require.Equal(t, peerwire.Card{
				InstanceID: "client-1", InstanceName: "Client", AppVersion: "1.2", Agents: []peerwire.Agent{{ID: w.client.agent}},
				Delegate: true, Idempotent: true, Async: true, Cancel: true,
			}, card)
			require.Equal(t, "hybridclaw-peer", g.body["protocol"])
			require.Equal(t, "no-store", g.header.Get("Cache-Control"))
		}},
		{"no bearer token is refused, and nothing runs", func(t *testing.T) {
			id := w.task()
			require.Equal(t, 401, w.do(request{url: at + peerhttp.DelegatePath, body: body(id, "say x")}).status)
			require.Empty(t, w.client.script.ran(peerwire.SessionID("hq-b", id)))
		}},
		{"a wrong bearer token is refused, and nothing runs", func(t *testing.T) {
			id := w.task()
			require.Equal(t, 401, w.do(request{url: at + peerhttp.DelegatePath, body: body(id, "say x"), token: "T-wrong"}).status)
			require.Empty(t, w.client.script.ran(peerwire.SessionID("hq-b", id)))
		}},
		{"a task runs once and is answered", func(t *testing.T) {
			id := w.task()
			g := w.delegate(id, "say 42 rows")
			require.Equal(t, 200, g.status, g.text)
			session := peerwire.SessionID("hq-b", id)
			require.Equal(t, map[string]any{
				"taskId": id, "peerInstanceId": "client-1", "peerRunId": g.body["peerRunId"], "peerSessionId": session, "status": "success",
				"result": "42 rows", "toolsUsed": []any{}, "agentId": w.client.agent, "pendingApprovalSummary": nil,
			}, g.body)
			require.Regexp(t, "^peer_[0-9]+_[0-9a-f]{8}$", g.body["peerRunId"])
			ran := w.client.script.ran(session)
			require.Len(t, ran, 1)
			require.Equal(t, "peer:hq-b", *ran[0].UserID)
			require.Equal(t, `"say 42 rows"`, string(ran[0].Content))
		}},
		{"an agentId of a wrong type is refused, and nothing runs", func(t *testing.T) {
			id := w.task()
			require.Equal(t, 400, w.delegate(id, "say x", `,"agentId":123`).status)
			require.Empty(t, w.client.script.ran(peerwire.SessionID("hq-b", id)))
		}},
		{"work that needs approval is rejected", func(t *testing.T) {
			id := w.task()
			g := w.delegate(id, "ask 5 EUR to otto?")
			require.Equal(t, 200, g.status, g.text)
			require.Equal(t, []any{"rejected", nil, "pay: 5 EUR to otto?"}, []any{
				g.body["status"], g.body["result"], g.body["pendingApprovalSummary"],
			})
			w.client.audited(id, topics.PeerReceived, topics.PeerCompleted)
			for _, r := range w.client.chain() {
				if r.TaskID == id && r.Event == topics.PeerCompleted {
					require.True(t, r.PendingApproval)
					require.Equal(t, "rejected", r.Status)
					require.Zero(t, r.ResultLength)
				}
			}
		}},
		{"a task goes through the proxy, once the receiver has the token", func(t *testing.T) {
			defer w.reset()
			id := w.task()
			w.client.configure(`{"enabled":true,"instanceId":"client-1"}`)
			g := w.proxy(id, "say 42 rows")
			require.Equal(t, 502, g.status, g.text)
			require.Equal(t, []any{"Unknown peer token.", "peer_refused", id, "client", 401.0}, []any{
				g.error(), g.code(), g.body["taskId"], g.body["peerId"], g.body["peerStatus"],
			})
			w.reset()
			id = w.task()
			g = w.proxy(id, "say 42 rows")
			require.Equal(t, 200, g.status, g.text)
			require.Equal(t, []any{id, "42 rows", "client-1"}, []any{g.body["taskId"], g.body["result"], g.body["peerInstanceId"]})
		}},
		{"a disabled instance refuses", func(t *testing.T) {
			defer w.reset()
			w.client.configure(`{"enabled":false}`)
			require.Equal(t, 503, w.delegate(w.task(), "say x").status)
		}},
	} {
		t.Run(c.name, c.test)
	}
}

// The rows of the endpoints, the inbound checks, and the agents that a token may use.
func TestInboundRows(t *testing.T) {
	w := newWorld(t)
	at := w.client.doors[0].URL
	post := func(token, body string) request {
		return request{url: at + peerhttp.DelegatePath, body: body, token: token}
	}
	off := func() { w.client.configure(`{"enabled":false,"instanceId":"client-1"}`) }
	for _, c := range []struct {
		name      string
		configure func()
		request   request
		status    int
		code      string
	}{
		{"the card of a disabled instance", off, request{method: "GET", url: at + peerhttp.CardPath}, 200, ""},
		{"the card with a body is no card", nil, request{url: at + peerhttp.CardPath}, 405, "method_not_allowed"},
		{"disabled comes before the token", off, post("", ""), 503, "disabled"},
		{"the proxy of a disabled instance", off, request{url: at + peerhttp.ProxyPath, body: `{}`}, 503, "disabled"},
		{"no header", nil, post("", "{"), 401, "missing_token"},
		{"unknown token", nil, post("T", "{"), 401, "unknown_token"},
		{"the token that replaces another one", nil, post("T-hq-new", body("row-1", "say x")), 200, ""},
		{"a large body", nil, post("T-hq", strings.Repeat(" ", peerwire.MaxBody+1)), 413, "too_large"},
		{"the largest body", nil, post("T-hq", body("row-2", "say x")+strings.Repeat(" ", peerwire.MaxBody-len(body("row-2", "say x")))), 200, ""},
		{"no JSON", nil, post("T-hq", "{"), 400, "invalid_json"},
		{"an empty body", nil, post("T-hq", ""), 400, "invalid_request"},
		{"null", nil, post("T-hq", "null"), 400, "invalid_request"},
		{"no content", nil, post("T-hq", `{"taskId":"x","parentInstanceId":""}`), 400, "invalid_request"},
		{"content is not trimmed", nil, post("T-hq", `{"taskId":"row-3","parentInstanceId":"","content":"say  "}`), 200, ""},
		{"nulls and unknown members", nil, post("T-hq", body("row-4", "say x", `,"agentId":null,"model":null,"timeoutMs":null,"x":[]`)), 200, ""},
		{"a list, and no agent", nil, post("T-listed", body("row-5", "say x")), 403, "agent_forbidden"},
		{"a list, and an agent of it that does not exist", nil, post("T-listed", body("row-6", "say x", `,"agentId":"front"`)), 404, "unknown_agent"},
		{"a list, and another agent", nil, post("T-listed", body("row-7", "say x", `,"agentId":"back"`)), 403, "agent_forbidden"},
		{"the default agent by name", nil, post("T-hq", body("row-8", "say x", `,"agentId":" `+w.client.agent+` "`)), 200, ""},
		{"an agent that does not exist", nil, post("T-hq", body("row-9", "say x", `,"agentId":"none"`)), 404, "unknown_agent"},
		{"another task with the ID", nil, post("T-hq", body("row-8", "say y")), 409, "conflict"},
		{"the same ID under another label", nil, request{method: "GET", url: at + peerhttp.TasksPath + "row-8", token: "T-listed"}, 404, "unknown_task"},
		{"the task under its label", nil, request{method: "GET", url: at + peerhttp.TasksPath + "row-8", token: "T-hq-new"}, 200, ""},
		{"the removed duplicate of the card", nil, request{method: "GET", url: at + "/api/peers", token: "T-hq"}, 404, "not_found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer w.reset()
			if c.configure != nil {
				c.configure()
			}
			g := w.do(c.request)
			require.Equal(t, c.status, g.status, g.text)
			require.Equal(t, "application/json; charset=utf-8", g.header.Get("Content-Type"))
			require.True(t, strings.HasPrefix(g.text, "{\n  \""), g.text)
			if c.status != 200 {
				require.Equal(t, c.code, g.code())
			}
			require.Equal(t, c.status == 401, g.header.Get("WWW-Authenticate") != "")
			require.Equal(t, c.status == 503, g.header.Get("Retry-After") != "")
		})
	}
	// Refusals are in the audit, at most ten per second of a label.
	codes := map[string]bool{}
	for _, r := range w.client.chain() {
		if r.Event == topics.PeerRefused {
			codes[r.Code] = true
		}
	}
	require.Subset(t, []string{
		"disabled", "missing_token", "unknown_token", "too_large", "invalid_json", "invalid_request", "agent_forbidden", "unknown_agent", "conflict",
	}, keysOf(codes))
	require.NotEmpty(t, codes)
}

func keysOf(m map[string]bool) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

// The group may read the output of a run before the record of its tool call: topics have no common order.
func TestToolsOfARunAreNamed(t *testing.T) {
	w := newWorld(t)
	used := []any{}
	for range 20 {
		g := w.delegate(w.task(), "use read", "")
		require.Equal(t, 200, g.status, g.text)
		require.Equal(t, "success", g.body["status"], g.text)
		if used = g.body["toolsUsed"].([]any); len(used) > 0 {
			break
		}
	}
	require.Equal(t, []any{"read"}, used)
}

func TestRunsThatDoNotSucceed(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name, content, more string
		want                map[string]any
	}{
		{"an error of the turn", "fail out of disk", "", map[string]any{"status": "error", "result": nil, "error": "out of disk"}},
		{"an empty result", "say ", "", map[string]any{"status": "success", "result": nil, "error": nil}},
		{"the time is over", "wait", `,"timeoutMs":300`, map[string]any{"status": "error", "result": nil}},
		{"the model is told", "say x", `,"model":"m-1"`, map[string]any{"status": "success", "model": "m-1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := w.delegate(w.task(), c.content, c.more)
			require.Equal(t, 200, g.status, g.text)
			for name, want := range c.want {
				require.Equal(t, want, g.body[name], g.text)
			}
		})
	}
}
