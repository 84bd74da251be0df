package agents

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/peer/peerhttp"
	"github.com/turntable-streams/turntable/topics"
)

func TestAsynchronousTaskIsFollowedFromAnotherDoor(t *testing.T) {
	w := newWorld(t)
	id := w.task()
	async := request{url: w.client.doors[0].URL + peerhttp.DelegatePath, body: body(id, "wait"), token: "T-hq", prefer: "respond-async"}
	g := w.do(async)
	require.Equal(t, 202, g.status, g.text)
	require.Equal(t, map[string]any{"taskId": id, "status": "running"}, g.body)
	base, err := url.Parse(w.client.doors[1].URL + peerhttp.DelegatePath)
	require.NoError(t, err)
	at, err := base.Parse(g.header.Get("Location"))
	require.NoError(t, err)
	poll := request{method: "GET", url: at.String(), token: "T-hq"}
	require.Equal(t, 202, w.do(poll).status)
	require.Equal(t, 202, w.do(async).status, "repeated")
	require.Equal(t, 404, w.do(request{method: "DELETE", url: at.String(), token: "T-listed"}).status, "of another peer")

	stop := poll
	stop.method, stop.url = "DELETE", stop.url+"?wait=60s"
	done := w.do(stop)
	require.Equal(t, []any{200, "error", "cancelled"}, []any{done.status, done.body["status"], done.body["error"]}, done.text)
	require.Equal(t, done.text, w.do(poll).text)
	require.Equal(t, done.text, w.do(async).text)
	require.Eventually(t, func() bool { return w.client.script.cancelled() == 1 }, waitLimit, 5*time.Millisecond)
	require.Len(t, w.client.script.ran(peerwire.SessionID("hq-b", id)), 1)
	w.client.audited(id, topics.PeerReceived, topics.PeerCompleted)
}

func TestTaskOutlivesTheDoorThatAcceptedIt(t *testing.T) {
	w := newWorld(t)
	id := w.task()
	g := w.do(request{url: w.client.doors[0].URL + peerhttp.DelegatePath, body: body(id, "wait"), token: "T-hq", prefer: "respond-async"})
	require.Equal(t, 202, g.status, g.text)
	w.client.doors[0].Close()
	at := w.client.doors[1].URL + peerhttp.TasksPath + id
	require.Equal(t, 202, w.do(request{method: "GET", url: at, token: "T-hq"}).status)
	w.client.door() // a restart
	g = w.do(request{method: "DELETE", url: w.client.doors[2].URL + peerhttp.TasksPath + id + "?wait=60", token: "T-hq"})
	require.Equal(t, 200, g.status, g.text)
}

func TestRevokedTokenIsRefusedInTheNextRequest(t *testing.T) {
	w := newWorld(t)
	id := w.task()
	async := request{url: w.client.doors[0].URL + peerhttp.DelegatePath, body: body(id, "say x"), token: "T-hq", prefer: "respond-async, wait=60"}
	require.Equal(t, 200, w.do(async).status)
	w.client.configure(`{"enabled":true,"instanceId":"client-1","inboundTokens":[{"id":"hq-b","token":"T-hq-new"}]}`)
	require.Equal(t, 401, w.do(async).status)
	async.token = "T-hq-new"
	require.Equal(t, 200, w.do(async).status, "the same label, so the same task")
}

func TestToolDelegatesThroughBothInstances(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name, input, status string
		contains            []string
	}{
		{"success", `{"peerId":" client ","content":"say 42 rows","taskId":"tool-1"}`, "success", []string{"client-1", "tool-1", "42 rows"}},
		{"an error", `{"peerId":"client","content":"fail out of disk"}`, "error", []string{"Peer delegation error on client-1", "out of disk"}},
		{"an approval", `{"peerId":"client","content":"ask 5 EUR?"}`, "error", []string{"Peer delegation rejected on client-1", "pay: 5 EUR?"}},
		{"the same task ID for another task", `{"peerId":"client","content":"say other","taskId":"tool-1"}`, "error", []string{"conflict"}},
		{"no content", `{"peerId":"client","content":" "}`, "error", []string{"invalid_input"}},
		{"unknown peer", `{"peerId":"none","content":"x"}`, "error", []string{"unknown_peer"}},
		{"a short time", `{"peerId":"client","content":"wait","timeoutMs":1500}`, "error", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			result := w.call("s-1", c.input)
			require.Equal(t, c.status, *result.Status, string(result.Result))
			require.Equal(t, peer.ToolName, *result.Name)
			for _, text := range c.contains {
				require.Contains(t, string(result.Result), text)
			}
		})
	}
	w.hq.audited("tool-1", topics.PeerSent, topics.PeerAcknowledged)
	w.client.audited("tool-1", topics.PeerReceived, topics.PeerCompleted)
}
