package whole

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/gate/gatehttp"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/peer/peerhttp"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

// payer is an instance that pays for peers once a person has approved it.
type payer struct {
	*world
	address string
	paid    atomic.Int32
	peer    *running
	config  peer.Config
}

func newPayer(t *testing.T, guarantee processors.Guarantee, config peer.Config) *payer {
	t.Helper()
	p := &payer{world: newWorld(t, guarantee, topics.WithPeers(), topics.WithGates())}
	s := must(peer.ParseSettings([]byte(`{"peers":{"enabled":true,"instanceId":"tenant-1","inboundTokens":[{"id":"hq","token":"`+peerToken+`"}]}}`),
		func(string) (string, bool) { return "", false }))
	current := func() *peer.Settings { return s }
	policy := approval.Policy{Rules: []approval.Rule{{Tool: "pay", Effect: approval.Ask, Message: "May this be paid?"}}}
	p.run("turns", must(turn.Graph(p.agent, turn.Config{Approval: &policy})))
	p.run("gates", must(gate.Graph(p.agent, gate.Config{Policy: policy})))
	p.run("grants", must(gate.GrantsGraph(p.agent, gate.Config{})))
	config.Settings, config.Gates = current, true
	p.config = config
	p.startPeers()
	p.run("chain", must(peer.ChainGraph(p.agent)))
	p.model(p.agent, func(_ context.Context, s think.Step) (think.Reply, error) {
		if *s.Input().Role == "tool" {
			return think.Say("told " + string(s.Input().Content)), nil
		}
		return think.Reply{Blocks: []think.Block{{Call: &think.Call{ID: "call-1", Name: "pay", Input: []byte(topics.Text(s.Input().Content))}}}}, nil
	})
	own := must(tools.NewWorker(p.agent, p.to, map[string]tools.Func{"pay": func(context.Context, tools.Call) (any, error) {
		return map[string]any{"receipt": p.paid.Add(1)}, nil
	}}, tools.Config{IgnoreUnknown: true}))
	p.serve(func(ctx context.Context) error { return own.Run(ctx, p.brokers) })
	replies := must(peerhttp.NewReplies(p.agent, peerhttp.Config{}))
	p.serve(func(ctx context.Context) error { return replies.Run(ctx, p.brokers) })
	index := must(gatehttp.NewIndex(p.agent, gatehttp.Config{}))
	p.serve(func(ctx context.Context) error { return index.Run(ctx, p.brokers) })
	mux := http.NewServeMux()
	mux.Handle("/", must(peerhttp.New(replies, p.to, current, peerhttp.Config{OpenProxy: true})))
	gates := must(gatehttp.New(index, p.to, gatehttp.Config{}))
	mux.Handle(gatehttp.GatesPath, gates)
	mux.Handle(gatehttp.GatesPath+"/", gates)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.address = server.URL
	<-replies.Ready()
	return p
}

func (p *payer) startPeers() { p.peer = p.run("peers", must(peer.Graph(p.agent, p.config))) }

func (p *payer) http(method, path, body string, headers ...string) (int, []byte) {
	p.t.Helper()
	r := must(http.NewRequestWithContext(p.ctx, method, p.address+path, strings.NewReader(body)))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(p.t, err)
	defer resp.Body.Close()
	return resp.StatusCode, must(io.ReadAll(resp.Body))
}

// task sends a task, or asks about it, as the peer.
func (p *payer) task(method, path, body string, headers ...string) (int, peerwire.Reply) {
	p.t.Helper()
	status, raw := p.http(method, path, body, append(headers, "Authorization", "Bearer "+peerToken)...)
	var head struct {
		TaskID string `json:"taskId"`
	}
	require.NoError(p.t, json.Unmarshal(raw, &head), "%s", raw)
	if status != http.StatusOK {
		return status, peerwire.Reply{}
	}
	reply, err := peerwire.ReadReply(raw, head.TaskID)
	require.NoError(p.t, err, "%s", raw)
	return status, reply
}

func (p *payer) delegate(id string, headers ...string) (int, peerwire.Reply) {
	p.t.Helper()
	return p.task(http.MethodPost, peerhttp.DelegatePath, string(peerwire.Request{TaskID: id, ParentInstanceID: "hq", Content: `{"eur":12.5}`}.Body()), headers...)
}

// pending returns the gates of a session that a person can decide about.
func (p *payer) pending(session string) (gates []gate.View) {
	p.t.Helper()
	_, body := p.http(http.MethodGet, gatehttp.GatesPath+"?status=pending&session_id="+session, "")
	var list struct {
		Gates []gate.View `json:"gates"`
	}
	require.NoError(p.t, json.Unmarshal(body, &list, json.RejectUnknownMembers(false)), "%s", body)
	return list.Gates
}

// approve approves the first request of a session. The list may be a moment old, so that it is one whose gate was closed.
func (p *payer) approve(session string) {
	p.t.Helper()
	gates := p.pending(session)
	require.NotEmpty(p.t, gates)
	require.JSONEq(p.t, `{"eur":12.5}`, gates[0].Args.String(), "a person sees what would run")
	status, body := p.http(http.MethodPost, gatehttp.GatesPath+"/"+gates[0].GateID+"/decision", `{"verdict":"approve","args_sha256":"`+gates[0].ArgsSHA256+`"}`)
	require.Equal(p.t, http.StatusOK, status, "%s", body)
}

// A task whose call needs approval is rejected for good. The approval of the request that it leaves is for the peer's next task, also
// if the group is killed between the steps.
func TestApprovalOfARejectedTaskIsForItsRetry(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		p := newPayer(t, guarantee, peer.Config{})
		_, first := p.delegate("pay-1")
		require.Equal(t, peerwire.StatusRejected, first.Status)
		require.Equal(t, "pay: May this be paid?", first.PendingApprovalSummary)
		p.approve(first.PeerSessionID)
		p.peer.kill()
		p.startPeers()
		_, again := p.delegate("pay-1")
		require.Equal(t, peerwire.StatusRejected, again.Status, "the task is over")
		require.Zero(t, p.paid.Load(), "and nothing of it runs")

		_, retry := p.delegate("pay-2")
		require.Equal(t, peerwire.StatusSuccess, retry.Status)
		require.Contains(t, retry.Result, "receipt")
		require.EqualValues(t, 1, p.paid.Load())
		p.peer.kill()
		p.startPeers()
		_, last := p.delegate("pay-3")
		require.Equal(t, peerwire.StatusRejected, last.Status)
		require.EqualValues(t, 1, p.paid.Load())

		p.eventually(func() bool { return len(p.pending(last.PeerSessionID)) == 1 })
		status, _ := p.task(http.MethodDelete, peerhttp.TasksPath+"pay-3", "")
		require.Equal(t, http.StatusOK, status)
		p.eventually(func() bool { return len(p.pending(last.PeerSessionID)) == 0 })
	})
}

func TestTaskThatMayWaitIsPaidAfterItsApproval(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		p := newPayer(t, guarantee, peer.Config{WaitForApproval: true})
		status, _ := p.delegate("pay-1", "Prefer", "respond-async")
		require.Equal(t, http.StatusAccepted, status)
		session := peerwire.SessionID("hq", "pay-1")
		p.eventually(func() bool { return len(p.pending(session)) == 1 })
		status, _ = p.task(http.MethodGet, peerhttp.TasksPath+"pay-1?wait=2s", "")
		require.Equal(t, http.StatusAccepted, status, "longer than the grace")
		p.approve(session)
		_, reply := p.task(http.MethodGet, peerhttp.TasksPath+"pay-1?wait=60s", "")
		require.Equal(t, peerwire.StatusSuccess, reply.Status)
		require.EqualValues(t, 1, p.paid.Load())
	})
}
