package agents

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/peer/peerhttp"
	"github.com/turntable-streams/turntable/topics"
)

// world is two instances that know each other: hq delegates to the client, which has two doors, and the client to hq.
type world struct {
	t          *testing.T
	hq, client *instance
	next       int // of task IDs
}

func newWorld(t *testing.T) *world {
	t.Helper()
	brokers := testbroker.Start(t)
	w := &world{t: t, hq: start(t, brokers, "hq-1", 1), client: start(t, brokers, "client-1", 2)}
	w.reset()
	return w
}

// The settings of the instances. The arguments are the base URL of the other one, and more members of peers.
const (
	hqPeers = `{"enabled":true,"instanceId":"hq-1","instanceName":"HQ",
		"outbound":[{"id":"client","baseUrl":"%s/","token":"T-hq"},{"id":"strict","baseUrl":"%[1]s","token":"T-hq","allowedAgentIds":["front"]}],
		"inboundTokens":[{"id":"client-b","token":"T-client","allowedTools":["delegate_to_peer"]}]%[2]s}`
	clientPeers = `{"enabled":true,"instanceId":"client-1","instanceName":"Client",
		"outbound":[{"id":"hq","baseUrl":"%s","token":"T-client"}],
		"inboundTokens":[{"id":"hq-b","token":"T-hq","allowedTools":["delegate_to_peer"]},{"id":"hq-b","token":"T-hq-new","allowedTools":["delegate_to_peer"]},
			{"id":"listed","token":"T-listed","allowedAgentIds":["front"]}]%s}`
)

// reset gives both instances their usual settings.
func (w *world) reset() {
	w.t.Helper()
	w.hq.configure(hqPeers, w.client.doors[0].URL, "")
	w.client.configure(clientPeers, w.hq.doors[0].URL, "")
}

// peerOf makes the peer client of hq a server of the test.
func (w *world) peerOf(url string) {
	w.t.Helper()
	w.hq.configure(hqPeers, url, "")
}

// task returns a new task ID.
func (w *world) task() string {
	w.next++
	return fmt.Sprintf("task-%d", w.next)
}

// got is an answer.
type got struct {
	status int
	header http.Header
	text   string
	body   map[string]any // nil if it is no object
}

func (g got) code() string  { return fmt.Sprint(g.body["code"]) }
func (g got) error() string { return fmt.Sprint(g.body["error"]) }

// request is a request to a door.
type request struct {
	method, url, body, token, prefer string
}

func (w *world) do(r request) got {
	w.t.Helper()
	g, err := try(context.Background(), r)
	require.NoError(w.t, err)
	return g
}

func try(ctx context.Context, q request) (g got, err error) {
	if q.method == "" {
		q.method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, q.method, q.url, strings.NewReader(q.body))
	if err != nil {
		return g, err
	}
	r.Header.Set("Content-Type", "application/json")
	if q.token != "" {
		r.Header.Set("Authorization", "Bearer "+q.token)
	}
	if q.prefer != "" {
		r.Header.Set("Prefer", q.prefer)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return g, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	g = got{status: resp.StatusCode, header: resp.Header, text: string(raw)}
	_ = json.Unmarshal(raw, &g.body)
	return g, err
}

// body returns the body of a request to the client.
func body(taskID, content string, more ...string) string {
	return fmt.Sprintf(`{"taskId":%q,"parentInstanceId":"hq-1","content":%q%s}`, taskID, content, strings.Join(more, ""))
}

// delegate sends a task to the first door of the client.
func (w *world) delegate(taskID, content string, more ...string) got {
	w.t.Helper()
	return w.do(request{url: w.client.doors[0].URL + peerhttp.DelegatePath, body: body(taskID, content, more...), token: "T-hq"})
}

// proxy sends a task through hq.
func (w *world) proxy(taskID, content string, more ...string) got {
	w.t.Helper()
	return w.do(w.forward("client", taskID, content, more...))
}

func (w *world) forward(peerID, taskID, content string, more ...string) request {
	return request{
		url:  w.hq.doors[0].URL + peerhttp.ProxyPath,
		body: fmt.Sprintf(`{"peerId":%q,"taskId":%q,"content":%q%s}`, peerID, taskID, content, strings.Join(more, "")),
	}
}

// call calls the tool in a session of hq, and returns its result.
func (w *world) call(session, input string) topics.ToolUseResult {
	w.t.Helper()
	request := w.task()
	w.hq.script.call(session, request, "delegate_to_peer", input)
	results := func() []topics.ToolUseResult {
		w.hq.mu.Lock()
		defer w.hq.mu.Unlock()
		return w.hq.tools["use-"+request]
	}
	require.Eventually(w.t, func() bool { return len(results()) > 0 }, waitLimit, 5*time.Millisecond)
	return results()[0]
}

// parse reads settings.
func parse(peers string) (*peer.Settings, error) {
	return peer.ParseSettings([]byte(`{"peers":`+peers+`}`), func(string) (string, bool) { return "", false })
}

// quoted returns a text as a JSON string.
func quoted(text string) string {
	raw, _ := jsontext.AppendQuote(nil, text)
	return string(raw)
}
