package peerhttp

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/topics"
)

const waitLimit = time.Minute

// noon is the time of the tests' clock.
var noon = time.UnixMilli(1_790_000_000_000)

// usual are the settings of most tests.
const usual = `{"enabled":true,"instanceId":"a-1","instanceName":"A","inboundTokens":[
	{"id":"partner-b","token":"T2"},
	{"id":"partner-c","token":"T3","allowedAgentIds":["front"]},
	{"id":"partner-d","token":"T4","callbackService":"d-callback","maxConcurrent":1},
	{"id":"partner-d","token":"T5","maxConcurrent":1}],
	"outbound":[{"id":"tenant-a","baseUrl":"https://a.example","token":"T1","timeoutMs":30000}],"inboundMaxConcurrent":4}`

// rig is a door with a real HTTP server, as one process has it.
type rig struct {
	t        testing.TB
	group    *group
	clock    *clock.Fake
	handler  *Handler
	replies  *Replies
	http     *httptest.Server
	settings atomic.Pointer[peer.Settings]
	read     atomic.Int64 // calls of the settings
}

func newRig(t testing.TB, change ...func(*Config)) *rig {
	t.Helper()
	g := newGroup(t)
	return g.door(clock.NewFake(noon), change...)
}

// door is another process of the same instance.
func (g *group) door(at *clock.Fake, change ...func(*Config)) *rig {
	g.t.Helper()
	d := &rig{t: g.t, group: g, clock: at}
	d.configure(usual)
	var err error
	d.replies, err = NewReplies("front", Config{})
	require.NoError(g.t, err)
	close(d.replies.follows.Ready)
	g.set(func(g *group) { g.doors = append(g.doors, d.replies) })
	current := func() *peer.Settings {
		d.read.Add(1)
		return d.settings.Load()
	}
	c := Config{Door: auth.Door{Clock: at}, OpenProxy: true, Agents: []string{"front", "back"}, DefaultAgent: "front"}
	for _, f := range change {
		f(&c)
	}
	d.handler, err = New(d.replies, g, current, c)
	require.NoError(g.t, err)
	d.http = httptest.NewServer(d.handler)
	g.t.Cleanup(d.http.Close)
	return d
}

// configure replaces the settings.
func (d *rig) configure(peers string) {
	d.t.Helper()
	s, err := peer.ParseSettings([]byte(`{"peers":`+peers+`}`), func(string) (string, bool) { return "", false })
	require.NoError(d.t, err)
	d.settings.Store(s)
}

// got is an answer.
type got struct {
	status int
	body   string
	header http.Header
}

// fault is the body of an error.
type fault struct {
	Error      string `json:"error"`
	Code       string `json:"code"`
	TaskID     string `json:"taskId"`
	PeerID     string `json:"peerId"`
	AgentID    string `json:"agentId"`
	TimeoutMS  int64  `json:"timeoutMs"`
	Answered   *bool  `json:"answered"`
	PeerStatus int64  `json:"peerStatus"`
	PeerError  string `json:"peerError"`
}

func (g got) fault(t testing.TB) (f fault) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(g.body), &f), g.body)
	require.Equal(t, "application/json; charset=utf-8", g.header.Get("Content-Type"))
	require.NotEmpty(t, f.Error)
	require.NotEmpty(t, f.Code)
	return f
}

// do sends a request; its headers are texts such as "Prefer: respond-async".
func (d *rig) do(method, path, body string, headers ...string) got {
	d.t.Helper()
	g, err := d.try(context.Background(), method, path, body, headers...)
	require.NoError(d.t, err)
	return g
}

// try may be called from any goroutine.
func (d *rig) try(ctx context.Context, method, path, body string, headers ...string) (got, error) {
	r, err := http.NewRequestWithContext(ctx, method, d.http.URL+path, strings.NewReader(body))
	if err != nil {
		return got{}, err
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	resp, err := d.http.Client().Do(r)
	if err != nil {
		return got{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return got{resp.StatusCode, string(text), resp.Header}, err
}

const (
	t2     = "Authorization: Bearer T2"
	t3     = "Authorization: Bearer T3"
	t4     = "Authorization: Bearer T4"
	asJSON = "Content-Type: application/json"
)

func requestOf(taskID string, more ...string) string {
	return `{"taskId":"` + taskID + `","parentInstanceId":"hq-1","content":"How many rows?"` + strings.Join(more, "") + `}`
}

func (d *rig) delegate(body string, headers ...string) got {
	d.t.Helper()
	return d.do("POST", DelegatePath, body, headers...)
}

func (d *rig) proxy(body string, headers ...string) got {
	d.t.Helper()
	return d.do("POST", ProxyPath, body, append([]string{asJSON}, headers...)...)
}

// later sends a request and returns its answer in a channel, which is empty if the request fails.
func (d *rig) later(ctx context.Context, method, path, body string, headers ...string) <-chan got {
	answer := make(chan got, 1)
	go func() {
		defer close(answer)
		if g, err := d.try(ctx, method, path, body, headers...); err == nil {
			answer <- g
		}
	}()
	return answer
}

// eventually blocks until a condition holds.
func (d *rig) eventually(holds func() bool, text ...any) {
	d.t.Helper()
	require.Eventually(d.t, holds, waitLimit, 2*time.Millisecond, text...)
}

// commanded blocks until the group has so many commands of a kind.
func (d *rig) commanded(kind topics.PeerCommandKind, n int) {
	d.t.Helper()
	d.eventually(func() bool { return len(d.group.of(kind)) >= n }, "commands of kind", kind)
}

// succeed replies to every task at once.
func succeed(c topics.PeerCommand) *topics.PeerReply {
	return &topics.PeerReply{Body: body(c.TaskID, "success", "42 rows")}
}

// disconnected disconnects the client of a request that waits for a reply; it counts as left after leaveTime.
func (d *rig) disconnected(disconnect func()) {
	d.t.Helper()
	require.NoError(d.t, d.clock.WaitTickers(d.t.Context(), 1))
	before := d.clock.Tickers()
	disconnect()
	require.NoError(d.t, d.clock.WaitTickers(d.t.Context(), before+1))
	d.clock.Advance(leaveTime)
}

// waiters returns how many tasks requests wait for.
func (r *Replies) waiters() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting)
}
