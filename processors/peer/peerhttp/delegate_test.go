package peerhttp

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/topics"
)

// The first check that fails decides. Each row fails its own check and, where it can, the ones after it.
func TestChecksOfADelegationInTheirOrder(t *testing.T) {
	const invalidText = "Invalid peer delegation request."
	for _, c := range []struct {
		name, settings, body string
		headers              []string
		status               int
		code, text           string
	}{
		{"disabled, before the token", `{"enabled":false}`, "{", nil, 503, "disabled", "Peer delegation is disabled."},
		{"no header", usual, "{", nil, 401, "missing_token", "Missing bearer token."},
		{"another scheme", usual, "{", []string{"Authorization: Basic T2"}, 401, "missing_token", "Missing bearer token."},
		{"scheme without a token", usual, "{", []string{"Authorization: Bearer"}, 401, "missing_token", "Missing bearer token."},
		{"two headers", usual, "{", []string{t2, t2}, 401, "missing_token", "Missing bearer token."},
		{"unknown token", usual, "{", []string{"Authorization: Bearer T9"}, 401, "unknown_token", "Unknown peer token."},
		{"a token that another one begins with", usual, "{", []string{"Authorization: Bearer T"}, 401, "unknown_token", "Unknown peer token."},
		{"body too large", usual, strings.Repeat(" ", peerwire.MaxBody+1), []string{t2}, 413, "too_large", "Request body too large."},
		{"not JSON", usual, "{", []string{t2}, 400, "invalid_json", "Invalid JSON body"},
		{"empty body", usual, "", []string{t2}, 400, "invalid_request", invalidText},
		{"blank body", usual, " \n", []string{t2}, 400, "invalid_request", invalidText},
		{"an array", usual, "[]", []string{t2}, 400, "invalid_request", invalidText},
		{"null", usual, "null", []string{t2}, 400, "invalid_request", invalidText},
		{"no taskId", usual, `{"parentInstanceId":"","content":"x"}`, []string{t2}, 400, "invalid_request", invalidText},
		{"empty taskId", usual, `{"taskId":"","parentInstanceId":"","content":"x"}`, []string{t2}, 400, "invalid_request", invalidText},
		{"no parentInstanceId", usual, `{"taskId":"t","content":"x"}`, []string{t2}, 400, "invalid_request", invalidText},
		{"empty content", usual, `{"taskId":"t","parentInstanceId":"","content":""}`, []string{t2}, 400, "invalid_request", invalidText},
		{"agentId is a number", usual, requestOf("t", `,"agentId":123`), []string{t2}, 400, "invalid_request", invalidText},
		{"parentRunId is a number", usual, requestOf("t", `,"parentRunId":1`), []string{t2}, 400, "invalid_request", invalidText},
		{"parentSessionId is an object", usual, requestOf("t", `,"parentSessionId":{}`), []string{t2}, 400, "invalid_request", invalidText},
		{"model is a boolean", usual, requestOf("t", `,"model":true`), []string{t2}, 400, "invalid_request", invalidText},
		{"timeoutMs is a text", usual, requestOf("t", `,"timeoutMs":"5"`), []string{t2}, 400, "invalid_request", invalidText},
		{"agent that the token may not use", usual, requestOf("t", `,"agentId":"back"`), []string{t3}, 403, "agent_forbidden", `Peer "partner-c" may not delegate to agent "back".`},
		{"no agent, with a list", usual, requestOf("t"), []string{t3}, 403, "agent_forbidden", `Peer "partner-c" must name an agent that it may delegate to.`},
		{"agent in another case", usual, requestOf("t", `,"agentId":"Front"`), []string{t3}, 403, "agent_forbidden", `Peer "partner-c" may not delegate to agent "Front".`},
		{"unknown agent", usual, requestOf("t", `,"agentId":"none"`), []string{t2}, 404, "unknown_agent", `Unknown agent "none".`},
		{"own instance in the chain", usual, requestOf("t", `,"instanceChain":["hq-1","a-1"]`), []string{t2}, 409, "loop", "The task has passed this instance already"},
		{"too many hops", usual, requestOf("t", `,"hopCount":5`), []string{t2}, 403, "hop_limit", "The task was passed on 5 times"},
		{"callback without Prefer", usual, requestOf("t", `,"callback":{"token":"C"}`), []string{t4}, 400, "invalid_request", "A callback needs"},
		{"callback without a service", usual, requestOf("t", `,"callback":{"token":"C"}`), []string{t2, "Prefer: respond-async"}, 400, "invalid_request", "No callback service"},
	} {
		d := newRig(t)
		d.configure(c.settings)
		g := d.delegate(c.body, c.headers...)
		require.Equal(t, c.status, g.status, "%s: %s", c.name, g.body)
		f := g.fault(t)
		require.Equal(t, c.code, f.Code, c.name)
		require.Contains(t, f.Error, c.text, c.name)
		require.True(t, strings.HasPrefix(g.body, "{\n  \"error\": "), "%s: %s", c.name, g.body)
		require.Equal(t, c.status == 401, g.header.Get("WWW-Authenticate") != "", c.name)
		require.Equal(t, c.status == 503, g.header.Get("Retry-After") != "", c.name)
		require.Empty(t, d.group.kinds(), "%s: nothing is run", c.name)
		require.Zero(t, d.handler.slots.len(), c.name)
		require.Equal(t, int64(1), d.read.Load(), "%s: one look at the settings", c.name)
		if d.settings.Load().InstanceID != "" {
			require.Equal(t, []string{c.code}, d.group.refused(), c.name)
		}
	}
}

func TestRequestsThatAreAccepted(t *testing.T) {
	for name, c := range map[string]struct {
		body  string
		agent string
		read  peerwire.Request
	}{
		"the required members": {
			`{"taskId":" t 1 ","parentInstanceId":"","content":" "}`, "front", peerwire.Request{TaskID: " t 1 ", Content: " "},
		},
		"blank agent, nulls and unknown members": {
			requestOf("t", `,"agentId":"  ","model":null,"parentRunId":null,"later":[{}]`), "front",
			peerwire.Request{TaskID: "t", ParentInstanceID: "hq-1", Content: "How many rows?"},
		},
		"all members": {
			requestOf("t", `,"agentId":" back ","model":" m ","parentRunId":"r","parentSessionId":"s","timeoutMs":1500.9,"hopCount":2,"instanceChain":["x"]`), "back",
			peerwire.Request{
				TaskID: "t", ParentInstanceID: "hq-1", Content: "How many rows?", AgentID: "back", Model: " m ", ParentRunID: "r",
				ParentSessionID: "s", Timeout: 1500 * time.Millisecond, Path: peerwire.Path{Hops: 2, Chain: []string{"x"}},
			},
		},
		"a negative timeout": {
			requestOf("t", `,"timeoutMs":-1.5`), "front", peerwire.Request{TaskID: "t", ParentInstanceID: "hq-1", Content: "How many rows?"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newRig(t)
			d.group.reply = succeed
			g := d.delegate(c.body, "Authorization: bEARER   T2 ", "Content-Type: text/plain")
			require.Equal(t, 200, g.status, g.body)
			c.read.Path.Hops = max(c.read.Path.Hops, 1)
			run := d.group.of(topics.PeerRun)[0]
			got, refusal := peerwire.ReadRequest(run.Request)
			require.Nil(t, refusal)
			require.Equal(t, c.read, got)
			deadline := noon.Add(10 * time.Minute)
			if c.read.Timeout > 0 {
				deadline = noon.Add(c.read.Timeout)
			}
			require.NotEmpty(t, run.Waiter)
			run.Request, run.Waiter = nil, ""
			require.Equal(t, topics.PeerCommand{
				Kind: topics.PeerRun, TaskID: c.read.TaskID, InboundID: "partner-b", Agent: c.agent, Hash: c.read.Hash(),
				DeadlineMS: deadline.UnixMilli(),
			}, run)
			require.Equal(t, []string{peerwire.SessionID("partner-b", c.read.TaskID)}, d.group.sessions)
			require.Zero(t, d.handler.slots.len())
		})
	}
}

func TestReplyHasTheMembersOfItsOutcome(t *testing.T) {
	for name, r := range map[string]peerwire.Reply{
		"success":               {Status: peerwire.StatusSuccess, Result: "42 rows", ToolsUsed: []string{"read"}, AgentID: "front", Model: "m-1"},
		"error":                 {Status: peerwire.StatusError, Error: "out of disk"},
		"rejected":              {Status: peerwire.StatusSuccess, Result: "started", PendingApprovalSummary: "pay: 5 EUR to otto?"},
		"the run was not able":  {Thrown: true, Error: "internal"},
		"an empty result":       {Status: peerwire.StatusSuccess},
		"text that JSON quotes": {Status: peerwire.StatusSuccess, Result: "<a href=\"x\">\u2028\n</a>"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newRig(t)
			r.TaskID, r.PeerInstanceID, r.PeerRunID, r.PeerSessionID = "t", "a-1", "peer_1_0a", "s"
			d.group.reply = func(topics.PeerCommand) *topics.PeerReply { return &topics.PeerReply{Body: r.Body()} }
			g := d.delegate(requestOf("t"), t2)
			require.Equal(t, 200, g.status)
			require.Equal(t, "application/json; charset=utf-8", g.header.Get("Content-Type"))
			require.Equal(t, string(r.Body()), g.body, "indented by 2, and as the group has stored it")
			var members map[string]any
			require.NoError(t, json.Unmarshal([]byte(g.body), &members))
			require.Equal(t, r.Settled().Result != "", members["result"] != nil)
			_, summary := members["pendingApprovalSummary"]
			require.Equal(t, !r.Thrown, summary, "null if there is none")
			if name == "rejected" {
				require.Equal(t, "rejected", members["status"])
				require.Equal(t, "pay: 5 EUR to otto?", members["pendingApprovalSummary"])
			}
		})
	}
}

func TestRepeatedTaskGetsTheSameReplyFromEveryDoor(t *testing.T) {
	d := newRig(t)
	other := d.group.door(d.clock)
	first := d.later(t.Context(), "POST", DelegatePath, requestOf("t"), t2)
	d.commanded(topics.PeerRun, 1)
	second := other.later(t.Context(), "POST", DelegatePath, requestOf("t"), t2)
	d.commanded(topics.PeerRun, 2)
	d.group.finish("partner-b", "t", "42 rows")
	want := <-first
	require.Equal(t, 200, want.status)
	require.Equal(t, want.body, (<-second).body, "it waits for the running task")
	for _, again := range []*rig{d, other} {
		require.Equal(t, want.body, again.delegate(requestOf("t"), t2).body, "after the end")
	}
	conflict := other.delegate(requestOf("t", `,"model":"m"`), t2)
	require.Equal(t, []any{409, "conflict"}, []any{conflict.status, conflict.fault(t).Code})
	require.Equal(t, []string{"conflict"}, d.group.refused())
	require.Equal(t, "t", d.group.events()[0].TaskID)

	d.group.set(func(g *group) { g.reply = succeed })
	require.Equal(t, 200, d.delegate(requestOf("t", `,"agentId":"front"`), t3).status, "another label: another task")
}

func TestSettingsCountFromTheNextRequest(t *testing.T) {
	d := newRig(t)
	d.group.reply = succeed
	require.Equal(t, 200, d.delegate(requestOf("a"), t2).status)
	d.configure(strings.Replace(usual, `{"id":"partner-b","token":"T2"},`, "", 1))
	g := d.delegate(requestOf("b"), t2)
	require.Equal(t, []any{401, "unknown_token"}, []any{g.status, g.fault(t).Code})
	require.Equal(t, `Bearer error="invalid_token"`, g.header.Get("WWW-Authenticate"))
	require.Equal(t, 401, d.do("GET", TasksPath+"a", "", t2).status)
	d.configure(strings.Replace(usual, "true", "false", 1))
	require.Equal(t, 503, d.delegate(requestOf("a"), t4).status)
	d.configure(usual)
	require.Equal(t, 200, d.delegate(requestOf("c"), t2).status)
}

func TestTaskOfADisconnectedClientIsLeft(t *testing.T) {
	d := newRig(t)
	ctx, disconnect := context.WithCancel(context.Background())
	answer := d.later(ctx, "POST", DelegatePath, requestOf("t", `,"timeoutMs":60000`), t2)
	d.commanded(topics.PeerRun, 1)
	d.disconnected(disconnect)
	d.commanded(topics.PeerLeave, 1)
	require.Empty(t, <-answer)
	run, leave := d.group.of(topics.PeerRun)[0], d.group.of(topics.PeerLeave)[0]
	require.Equal(t, topics.PeerCommand{Kind: topics.PeerLeave, TaskID: "t", InboundID: "partner-b", Hash: run.Hash, Waiter: run.Waiter}, leave)
	require.Equal(t, 1, d.handler.slots.len(), "until the run has ended")
	d.group.finish("partner-b", "t", "")
	require.Zero(t, d.handler.slots.len())
	d.eventually(func() bool { return d.replies.waiters() == 0 }, "nobody waits")
}

func TestReplyThatDoesNotComeIsNotAwaitedForever(t *testing.T) {
	d := newRig(t)
	d.group.silent = true
	answer := d.later(t.Context(), "POST", DelegatePath, requestOf("t", `,"timeoutMs":60000`), t2)
	require.NoError(t, d.clock.WaitTickers(t.Context(), 1))
	d.clock.Advance(time.Minute)
	require.Empty(t, d.group.of(topics.PeerLeave))
	d.clock.Advance(replyMargin)
	g := <-answer
	require.Equal(t, []any{503, "unavailable", "1"}, []any{g.status, g.fault(t).Code, g.header.Get("Retry-After")})
	d.configure(strings.Replace(usual, `"inboundMaxConcurrent":4`, `"inboundMaxConcurrent":1`, 1))
	d.group.set(func(g *group) { g.silent, g.reply = false, succeed })
	require.Equal(t, 200, d.delegate(requestOf("u"), t2).status, "the slot of a task whose deadline has passed is free")
}

func TestDoorThatStopsAnswersWhoWaits(t *testing.T) {
	d := newRig(t)
	answer := d.later(t.Context(), "POST", DelegatePath, requestOf("t"), t2)
	d.commanded(topics.PeerRun, 1)
	close(d.replies.follows.Ended)
	require.Equal(t, 503, (<-answer).status)
	require.Equal(t, []topics.PeerCommandKind{topics.PeerRun}, d.group.kinds(), "the task continues, for the request that is repeated")
	require.Equal(t, 503, d.delegate(requestOf("t"), t2).status)
	require.Len(t, d.group.kinds(), 1)
}

// A server that stops ends the contexts of its requests, before or after the replies end.
func TestRunOfAServerThatStopsIsNotCancelled(t *testing.T) {
	for _, body := range []string{requestOf("t"), task1} {
		path, kind := DelegatePath, topics.PeerRun
		if body == task1 {
			path, kind = ProxyPath, topics.PeerDelegate
		}
		d := newRig(t)
		ctx, stop := context.WithCancel(context.Background())
		d.later(ctx, "POST", path, body, t2, asJSON)
		d.commanded(kind, 1)
		require.NoError(t, d.clock.WaitTickers(t.Context(), 1))
		stop()
		require.NoError(t, d.clock.WaitTickers(t.Context(), 2))
		close(d.replies.follows.Ended)
		d.eventually(func() bool { return d.handler.peers.Len()+d.handler.callers.Len() == 0 })
		require.Equal(t, []topics.PeerCommandKind{kind}, d.group.kinds())
	}
}

func TestAsynchronousRequestsOfADoorThatStopsAreToldThatTheTaskRuns(t *testing.T) {
	d := newRig(t)
	post := d.later(t.Context(), "POST", DelegatePath, requestOf("t"), t2, "Prefer: respond-async, wait=25")
	require.NoError(t, d.clock.WaitTickers(t.Context(), 2))
	poll := d.later(t.Context(), "GET", TasksPath+"t?wait=25s", "", t2)
	require.NoError(t, d.clock.WaitTickers(t.Context(), 4))
	sent := d.later(t.Context(), "POST", ProxyPath, task1, asJSON, "Prefer: respond-async, wait=25")
	require.NoError(t, d.clock.WaitTickers(t.Context(), 6))
	close(d.replies.follows.Ended)
	g := <-post
	require.Equal(t, []any{202, "tasks/t"}, []any{g.status, g.header.Get("Location")})
	require.Equal(t, 202, (<-poll).status)
	require.Equal(t, 202, (<-sent).status)
}

func TestDoorWithoutRepliesIsNotReady(t *testing.T) {
	d := newRig(t)
	d.replies.follows.Ready = make(chan struct{})
	for _, g := range []got{
		d.delegate(requestOf("t"), t2), d.do("GET", TasksPath+"t", "", t2), d.proxy(`{"peerId":"tenant-a","content":"x"}`),
	} {
		require.Equal(t, []any{503, "unavailable", "1"}, []any{g.status, g.fault(t).Code, g.header.Get("Retry-After")})
	}
	require.Equal(t, 401, d.delegate(requestOf("t")).status, "it is not told to everyone")
	require.Empty(t, d.group.kinds())
	require.Zero(t, d.handler.slots.len())
}

func TestFailuresOfTheReceiver(t *testing.T) {
	d := newRig(t)
	d.group.full = true
	g := d.delegate(requestOf("t"), t2)
	require.Equal(t, []any{503, "no_room", "1"}, []any{g.status, g.fault(t).Code, g.header.Get("Retry-After")})
	d.group.full, d.group.err = false, fmt.Errorf("the brokers at 192.0.2.1 are gone")
	g = d.delegate(requestOf("t"), t2)
	require.Equal(t, []any{500, "internal"}, []any{g.status, g.fault(t).Code})
	require.NotContains(t, g.body, "192.0.2.1")
	d.group.err, d.group.reply = nil, func(topics.PeerCommand) *topics.PeerReply { return &topics.PeerReply{Code: "internal"} }
	require.Equal(t, 500, d.delegate(requestOf("u"), t2).status, "a task that ended without a reply")
	d.settings.Store(nil)
	g = d.delegate(requestOf("t"), t2)
	require.Equal(t, []any{500, "internal"}, []any{g.status, g.fault(t).Code}, "a panic")
	require.Zero(t, d.handler.slots.len())
}
