package peer

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

func TestChecksOfATask(t *testing.T) {
	run := func(t machinetest.TB, p *harness, hops int32, chain ...string) {
		p.Set(&peerrow.State{Version: peerrow.Version, TouchedMs: p.Now.UnixMilli(), Run: &peerrow.Run{
			TaskId: "up", InboundId: "partner-b", RunId: "peer_9", Hops: hops, Chain: chain, Phase: peerrow.Run_ENDED,
			EndedMs: p.Now.UnixMilli(), ExpiresMs: p.Now.UnixMilli(),
		}})
	}
	allow := func(s *Settings) {
		s.Inbound = []Inbound{{ID: "partner-b", AllowedTools: []string{ToolName}}}
	}
	for name, test := range map[string]struct {
		change func(*harness)
		input  string
		want   peerwire.Code
	}{
		"sub-agent":         {func(p *harness) { p.key = "s1--sub" }, asking, peerwire.CodeToolForbidden},
		"allowed sub-agent": {func(p *harness) { p.key, p.config.SubAgents = "s1--sub", true }, asking, ""},
		"task of a peer":    {func(p *harness) { run(t, p, 1, "b-1") }, asking, peerwire.CodeToolForbidden},
		"allowed task of a peer": {func(p *harness) {
			run(t, p, 1, "b-1")
			p.configure(allow)
		}, asking, ""},
		"task of a peer that is forgotten": {func(p *harness) { p.key = peerwire.SessionID("partner-b", "up") }, asking, peerwire.CodeToolForbidden},
		"disabled": {func(p *harness) {
			p.configure(func(s *Settings) { s.Enabled = false })
		}, asking, peerwire.CodeDisabled},
		"unknown peer":    {nil, `{"peerId":"nobody","content":"x"}`, peerwire.CodeUnknownPeer},
		"no agent":        {nil, `{"peerId":"tenant-b","content":"x"}`, peerwire.CodeAgentForbidden},
		"forbidden agent": {nil, `{"peerId":"tenant-b","content":"x","agentId":"back"}`, peerwire.CodeAgentForbidden},
		"allowed agent":   {nil, `{"peerId":"tenant-b","content":"x","agentId":" front "}`, ""},
		"loop": {func(p *harness) {
			run(t, p, 2, "hq-1", "b-1")
			p.configure(allow)
		}, asking, peerwire.CodeLoop},
		"hop limit": {func(p *harness) {
			run(t, p, 4, "b-1")
			p.configure(allow)
		}, asking, peerwire.CodeHopLimit},
		"last hop": {func(p *harness) {
			run(t, p, 3, "b-1")
			p.configure(allow)
		}, asking, ""},
		"task limit": {func(p *harness) {
			p.config.TaskLimit = 1
			p.Handle(p.delegation("turn-0/0/tool-use/0", asking))
		}, asking, peerwire.CodeNoRoom},
		"no room": {
			func(p *harness) { p.config.RowLimit = 64 << 10 },
			`{"peerId":"tenant-a","content":"` + strings.Repeat("x", 65<<10) + `"}`, peerwire.CodeNoRoom,
		},
		"too large": {nil, `{"peerId":"tenant-a","content":"` + strings.Repeat("\u20ac", 400_000) + `"}`, peerwire.CodeTooLarge},
		"forbidden before disabled": {func(p *harness) {
			p.key = "s1--sub"
			p.configure(func(s *Settings) { s.Enabled = false })
		}, asking, peerwire.CodeToolForbidden},
		"agent before loop": {func(p *harness) {
			run(t, p, 9, "hq-1")
			p.configure(allow)
		}, `{"peerId":"tenant-b","content":"x"}`, peerwire.CodeAgentForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			p := newHarness(t)
			if test.change != nil {
				test.change(p)
			}
			es := p.settle(p.delegation(callID, test.input))
			if test.want == "" {
				attemptOf(t, es)
				require.Equal(t, []topics.PeerEvent{topics.PeerSent}, events(es))
				return
			}
			require.Empty(t, machinetest.Values[topics.Delivery](es))
			require.Equal(t, []topics.PeerEvent{topics.PeerSent, topics.PeerSendFailed}, events(es))
			require.Equal(t, string(test.want), machinetest.Values[topics.PeerAudit](es)[1].Code)
			require.NotEmpty(t, requireFailed(t, es, test.want))
		})
	}
}

func TestTaskOfAPeerIsSentWithItsWay(t *testing.T) {
	p := newHarness(t)
	p.configure(func(s *Settings) { s.Inbound[0].AllowedTools = []string{ToolName} })
	p.Set(&peerrow.State{Version: peerrow.Version, Run: &peerrow.Run{
		TaskId: "up", InboundId: "partner-b", RunId: "peer_9", Hops: 2, Chain: []string{"b-1"}, Phase: peerrow.Run_RUNNING,
		ExpiresMs: p.Now.Add(time.Hour).UnixMilli(),
	}})
	req, refusal := peerwire.ReadRequest(sent(t, attemptOf(t, p.Handle(p.delegation(callID, asking)))).Request)
	require.Nil(t, refusal)
	require.Equal(t, peerwire.Path{Hops: 3, Chain: []string{"b-1", "hq-1"}}, req.Path)
	require.Equal(t, "peer_9", req.ParentRunID)
}

func TestInstanceWithoutAnIDHasNoAuditOfTasks(t *testing.T) {
	p := newHarness(t)
	p.configure(func(s *Settings) { s.Enabled, s.InstanceID = false, "" })
	es := p.settle(p.delegation(callID, asking))
	require.Empty(t, events(es))
	requireFailed(t, es, peerwire.CodeDisabled)
}

func TestInputOfTheTool(t *testing.T) {
	for name, input := range map[string]string{
		"no input":         ``,
		"no peer":          `{"content":"x"}`,
		"blank peer":       `{"peerId":" \u00a0","content":"x"}`,
		"blank content":    `{"peerId":"tenant-a","content":"\n"}`,
		"peer is a number": `{"peerId":7,"content":"x"}`,
		"agent is a list":  `{"peerId":"tenant-a","content":"x","agentId":["front"]}`,
		"time is a text":   `{"peerId":"tenant-a","content":"x","timeoutMs":"9"}`,
		"time is infinite": `{"peerId":"tenant-a","content":"x","timeoutMs":1e999}`,
		"long task":        `{"peerId":"tenant-a","content":"x","taskId":"` + strings.Repeat("x", 1025) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := newHarness(t)
			es := p.Handle(p.delegation(callID, input))
			require.Len(t, es, 1)
			requireFailed(t, es, peerwire.CodeInvalidInput)
			require.Nil(t, p.Read())
			require.Equal(t, es.Records(), p.Handle(p.delegation(callID, input)).Records())
		})
	}
	p := newHarness(t)
	begin := func(id, input string) (peerwire.Attempt, peerwire.Request) {
		body := sent(t, attemptOf(t, p.Handle(p.delegation(id, input))))
		req, refusal := peerwire.ReadRequest(body.Request)
		require.Nil(t, refusal)
		return body, req
	}
	body, req := begin("turn-1/0/tool-use/0", `{"peerId":" tenant-a ","content":" x\n","agentId":"\tfront","model":null,"taskId":" t-9 ","timeoutMs":2500.9}`)
	require.Equal(t, []string{"t-9", "x", "front", ""}, []string{req.TaskID, req.Content, req.AgentID, req.Model})
	require.Equal(t, 2500*time.Millisecond, body.Timeout)
	require.Equal(t, p.Now.Add(2500*time.Millisecond), body.Deadline.UTC())
	body, _ = begin("turn-1/0/tool-use/1", `{"peerId":"tenant-a","content":"x","timeoutMs":-1}`)
	require.Equal(t, time.Second, body.Timeout)
	body, _ = begin("turn-1/0/tool-use/2", `{"peerId":"tenant-a","content":"x","timeoutMs":1e300}`)
	require.Equal(t, p.config.TaskTime, body.Timeout)
	require.Equal(t, reasonCall, letter(t, p.Handle(p.toolCall(callID, ToolName, asking, func(i *topics.ToolUseItem) { i.ToolUseID = nil }))))
	require.Empty(t, p.Handle(p.toolCall(callID, "read", asking)))
}

func TestCallWithTheTaskIDOfAnotherOneIsAConflict(t *testing.T) {
	p := newHarness(t)
	named := `{"peerId":"tenant-a","content":"x","taskId":"t-9"}`
	a := attemptOf(t, p.Handle(p.delegation(callID, named)))
	for i, input := range []string{named, `{"peerId":"tenant-a","content":"y","taskId":"t-9"}`} {
		es := p.settle(p.delegation(callID+strings.Repeat("x", i+1), input))
		requireFailed(t, es, peerwire.CodeConflict)
		require.Empty(t, events(es), "the audit has one task with an ID")
	}
	attemptOf(t, p.Handle(p.delegation(callID+"b", `{"peerId":"tenant-b","content":"y","agentId":"front","taskId":"t-9"}`)))
	status, _ := toolResultOf(t, p.settle(p.replied(a)))
	require.Equal(t, "success", status)
}

func TestForeignCallWithoutAnID(t *testing.T) {
	p := newHarness(t)
	p.configure(func(s *Settings) { s.Outbound = []Outbound{{ID: "tenant-a"}} })
	call := p.delegation("", asking)
	es := p.Handle(call)
	a := attemptOf(t, es)
	require.Equal(t, DefaultTimeout, sent(t, a).Timeout)
	require.Empty(t, p.Handle(call))
	require.Empty(t, p.Handle(p.output("turn-1/1/answer/0", "bye")))
	es = p.settle(p.replied(a))
	require.Equal(t, "toolu_", *machinetest.Only[topics.ToolUseResult](t, es).ToolUseID)
}

// A program that a session runs may call the proxy for it, so the proxy obeys the rule of the tool.
func TestProxiedTaskOfASessionThatMayNotDelegateIsRefused(t *testing.T) {
	for name, key := range map[string]string{"sub-agent": "s1--sub", "run that is forgotten": peerwire.SessionID("partner-b", "up")} {
		t.Run(name, func(t *testing.T) {
			p := newHarness(t)
			p.key = key
			es := p.Handle(p.proxied("t-1", "w-1"))
			require.Empty(t, attemptsOf(t, es))
			require.Equal(t, string(peerwire.CodeToolForbidden), machinetest.Values[topics.PeerCommand](es)[0].Code)
		})
	}
}
