package peerhttp

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/topics"
)

// callers authenticates the user that the header Authorization names: "name rights sessions".
func callers(r *http.Request) (auth.Caller, error) {
	fields := strings.Fields(r.Header.Get("Authorization"))
	if len(fields) != 3 {
		return auth.Caller{}, errors.New("no credential")
	}
	rights, err := auth.ParseRights(strings.Split(fields[1], ",")...)
	if err != nil {
		return auth.Caller{}, err
	}
	sessions, err := auth.ParseSessions(fields[2])
	return auth.Caller{UserID: fields[0], Rights: rights, MayUse: sessions.For(fields[0])}, err
}

const (
	mira  = "Authorization: mira write {user}:*"
	task1 = `{"peerId":"tenant-a","content":"How many rows?","taskId":"t"}`
)

// closedRig is a rig whose proxy has authentication.
func closedRig(t testing.TB, change ...func(*Config)) *rig {
	return newRig(t, append(change, func(c *Config) { c.OpenProxy = false })...)
}

func TestProxyIsClosedWithoutAuthentication(t *testing.T) {
	for name, d := range map[string]*rig{
		"not configured": closedRig(t), "configured": closedRig(t, func(c *Config) { c.Authenticate = callers }),
	} {
		d.configure(`{"enabled":false}`)
		g := d.proxy(task1) // from the same machine
		require.Equal(t, []any{401, "unauthorized"}, []any{g.status, g.fault(t).Code}, name)
		require.NotEmpty(t, g.header.Get("WWW-Authenticate"))
	}
	d := closedRig(t, func(c *Config) { c.Authenticate = callers })
	d.configure(`{"enabled":false}`)
	require.Equal(t, 503, d.proxy(task1, mira).status, "disabled, after the authentication")
	require.Equal(t, 403, d.proxy(task1, "Authorization: mira read,answer,control *").status)
	d.configure(usual)
	d.group.reply = succeed
	require.Equal(t, 200, d.proxy(task1, mira).status)
	require.Equal(t, 415, d.do("POST", ProxyPath, task1, mira, "Content-Type: text/plain").status)
	require.Equal(t, 403, d.proxy(task1, mira, "Sec-Fetch-Site: cross-site").status)
	require.Empty(t, d.group.refused(), "that is the audit of tasks of peers")
}

func TestSessionOfATaskForAPeer(t *testing.T) {
	d := closedRig(t, func(c *Config) { c.Authenticate = callers })
	d.group.reply = succeed
	with := func(session string) string {
		return strings.Replace(task1, "}", `,"parentSessionId":"`+session+`"}`, 1)
	}
	require.Equal(t, 200, d.proxy(with("mira:1"), mira).status)
	require.Equal(t, 403, d.proxy(with("otto:1"), mira).status, "a session of another user")
	require.Equal(t, 400, d.proxy(with(`mira:\u0000`), mira).status)
	require.Equal(t, 200, d.proxy(with(" "), mira).status, "blank counts as absent")
	require.Equal(t, 200, d.proxy(task1, mira).status)
	require.Equal(t, 200, d.proxy(task1, "Authorization: otto write *").status)
	sessions := d.group.sessions
	require.Equal(t, "mira:1", sessions[0])
	require.Regexp(t, "^peer-proxy:[0-9a-f]{32}$", sessions[1])
	require.Equal(t, sessions[1], sessions[2])
	require.NotEqual(t, sessions[2], sessions[3], "another caller does not see the task")
	read := func(i int) peerwire.Request {
		r, refusal := peerwire.ReadRequest(d.group.commands[i].Request)
		require.Nil(t, refusal)
		return r
	}
	require.Equal(t, "mira:1", read(0).ParentSessionID)
	require.Empty(t, read(1).ParentSessionID)
}

func TestRequestsToTheProxy(t *testing.T) {
	for _, c := range []struct {
		name, body string
		status     int
		code       string
		want       peerwire.Request
		timeout    time.Duration
	}{
		{"no JSON", `{`, 400, "invalid_json", peerwire.Request{}, 0},
		{"blank", ` `, 400, "invalid_request", peerwire.Request{}, 0},
		{"null", `null`, 400, "invalid_request", peerwire.Request{}, 0},
		{"an array", `[1]`, 400, "invalid_request", peerwire.Request{}, 0},
		{"no peerId", `{"content":"x"}`, 400, "invalid_request", peerwire.Request{}, 0},
		{"blank peerId", `{"peerId":" ","content":"x"}`, 400, "invalid_request", peerwire.Request{}, 0},
		{"peerId of a wrong type", `{"peerId":5,"content":"x"}`, 400, "invalid_request", peerwire.Request{}, 0},
		{"empty content", `{"peerId":"tenant-a","content":""}`, 400, "invalid_request", peerwire.Request{}, 0},
		{"long ID", `{"peerId":"tenant-a","content":"x","model":"` + strings.Repeat("m", 1025) + `"}`, 400, "invalid_request", peerwire.Request{}, 0},
		{"task ID that is no Unicode", `{"peerId":"tenant-a","content":"x","taskId":"\ud800"}`, 400, "invalid_request", peerwire.Request{}, 0},
		{"large", `{"peerId":"tenant-a","content":"` + strings.Repeat("x", peerwire.MaxBody) + `"}`, 413, "too_large", peerwire.Request{}, 0},
		{"content is not trimmed", `{"peerId":" tenant-a ","content":" ","taskId":" t "}`, 200, "", peerwire.Request{TaskID: "t", Content: " "}, 30 * time.Second},
		{
			"all members", `{"peerId":"tenant-a","content":"x","taskId":"t","agentId":" a ","model":" m ","timeoutMs":2500.7,"parentRunId":" r ","x":1}`,
			200, "",
			peerwire.Request{TaskID: "t", Content: "x", AgentID: "a", Model: "m", ParentRunID: " r ", Timeout: 2500 * time.Millisecond},
			2500 * time.Millisecond,
		},
		{
			"wrong types count as absent",
			`{"peerId":"tenant-a","content":"x","taskId":"t","agentId":5,"model":null,"timeoutMs":"5","parentRunId":{},"parentSessionId":[]}`,
			200, "",
			peerwire.Request{TaskID: "t", Content: "x"},
			30 * time.Second,
		},
		{"short timeout", `{"peerId":"tenant-a","content":"x","taskId":"t","timeoutMs":-5}`, 200, "", peerwire.Request{TaskID: "t", Content: "x", Timeout: time.Second}, time.Second},
		{"long timeout", `{"peerId":"tenant-a","content":"x","taskId":"t","timeoutMs":1e300}`, 200, "", peerwire.Request{TaskID: "t", Content: "x", Timeout: 10 * time.Minute}, 10 * time.Minute},
		{"unknown peer", `{"peerId":"none","content":"x","taskId":"t"}`, 200, "", peerwire.Request{TaskID: "t", Content: "x"}, time.Minute},
	} {
		d := newRig(t)
		d.group.reply = succeed
		g := d.proxy(c.body)
		require.Equal(t, c.status, g.status, "%s: %s", c.name, g.body)
		if c.status != 200 {
			require.Equal(t, c.code, g.fault(t).Code, c.name)
			require.Empty(t, d.group.kinds(), c.name)
			continue
		}
		sent := d.group.of(topics.PeerDelegate)[0]
		got, refusal := peerwire.ReadRequest(sent.Request)
		require.Nil(t, refusal, c.name)
		c.want.ParentInstanceID, c.want.Path.Hops = "a-1", 1
		require.Equal(t, c.want, got, c.name)
		require.Equal(t, noon.Add(c.timeout).UnixMilli(), sent.DeadlineMS, c.name)
		require.True(t, sent.Once && !sent.Detached, c.name)
	}
}

func TestProxyMakesTaskIDs(t *testing.T) {
	d := newRig(t)
	d.group.reply = succeed
	for _, taskID := range []string{``, `,"taskId":" "`, `,"taskId":7`} {
		require.Equal(t, 200, d.proxy(`{"peerId":"tenant-a","content":"x"`+taskID+`}`).status)
	}
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for _, c := range d.group.of(topics.PeerDelegate) {
		require.Regexp(t, uuid, c.TaskID)
		seen[c.TaskID] = true
	}
	require.Len(t, seen, 3)
}

func TestProxyPassesOnTheReply(t *testing.T) {
	for _, status := range []string{"success", "error", "rejected"} {
		d := newRig(t)
		d.group.reply = func(topics.PeerCommand) *topics.PeerReply {
			return &topics.PeerReply{Body: topics.Raw(`{"taskId":"t","status":"` + status + `","later":{"a":[1.50,"\u00e9"]},"later":2}`)}
		}
		g := d.proxy(task1)
		require.Equal(t, 200, g.status)
		require.Equal(t, "{\n  \"taskId\": \"t\",\n  \"status\": \""+status+"\",\n  \"later\": {\n    \"a\": [\n      1.50,\n      \"\\u00e9\"\n    ]\n  },\n  \"later\": 2\n}", g.body)
	}
}

func TestTasksWithoutAReply(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		reply  topics.PeerReply
		status int
		want   fault
		retry  string
	}{
		{topics.PeerReply{Code: "unknown_peer"}, 404, fault{Error: `Unknown peer id "tenant-a".`}, ""},
		{topics.PeerReply{Code: "agent_forbidden"}, 403, fault{Error: `Peer "tenant-a" may not be asked for agent "back".`, AgentID: "back"}, ""},
		{topics.PeerReply{Code: "tool_forbidden"}, 403, fault{Error: "The session may not delegate to peers."}, ""},
		{topics.PeerReply{Code: "timeout"}, 504, fault{Error: `Peer "tenant-a": delegation timed out after 2000 ms.`, TimeoutMS: 2000, Answered: &no}, ""},
		{topics.PeerReply{Code: "timeout", Answered: true}, 504, fault{Error: `Peer "tenant-a": delegation timed out after 2000 ms.`, TimeoutMS: 2000, Answered: &yes}, ""},
		{topics.PeerReply{Code: "unreachable", Detail: "connection refused"}, 502, fault{Error: `Peer "tenant-a": request failed: connection refused`}, ""},
		{topics.PeerReply{Code: "unreachable"}, 502, fault{Error: `Peer "tenant-a": request failed.`}, ""},
		{topics.PeerReply{Code: "malformed_reply", HTTPStatus: 200}, 502, fault{Error: `Peer "tenant-a": malformed delegation response.`, PeerStatus: 200}, ""},
		{topics.PeerReply{Code: "peer_refused", HTTPStatus: 400, Detail: "bad"}, 502, fault{Error: "bad", PeerStatus: 400, PeerError: "bad"}, ""},
		{topics.PeerReply{Code: "peer_refused", HTTPStatus: 401, Detail: "Unknown peer token."}, 502, fault{Error: "Unknown peer token.", PeerStatus: 401, PeerError: "Unknown peer token."}, ""},
		{topics.PeerReply{Code: "peer_refused", HTTPStatus: 403}, 502, fault{Error: "HTTP 403", PeerStatus: 403}, ""},
		{topics.PeerReply{Code: "peer_refused", HTTPStatus: 500, Detail: "boom"}, 502, fault{Error: "boom", PeerStatus: 500, PeerError: "boom"}, ""},
		{topics.PeerReply{Code: "peer_busy", HTTPStatus: 429, RetryAfterMS: 7100}, 503, fault{Error: "HTTP 429", PeerStatus: 429}, "8"},
		{topics.PeerReply{Code: "peer_busy", HTTPStatus: 503, Detail: "off"}, 503, fault{Error: "off", PeerStatus: 503, PeerError: "off"}, "1"},
		{topics.PeerReply{Code: "outcome_unknown"}, 502, fault{Error: `Peer "tenant-a": the request was interrupted; the peer may have run the task, and was not asked again.`}, ""},
		{topics.PeerReply{Code: "cancelled"}, 499, fault{Error: "The task was cancelled."}, ""},
		{topics.PeerReply{Code: "disabled"}, 503, fault{Error: "Peer delegation is disabled."}, "1"},
		{topics.PeerReply{Code: "no_room"}, 503, fault{Error: "The session has no room for the task."}, "1"},
		{topics.PeerReply{Code: "loop"}, 409, fault{Error: "The task has passed this instance already."}, ""},
		{topics.PeerReply{Code: "hop_limit"}, 403, fault{Error: "The task has passed too many instances."}, ""},
		{topics.PeerReply{Code: "unknown_task"}, 410, fault{Error: "The task has ended, and its outcome is no longer kept."}, ""},
		{topics.PeerReply{Code: "invalid_input"}, 400, fault{Error: "The task is not usable."}, ""},
		{topics.PeerReply{Code: "internal", Detail: "x"}, 500, fault{Error: "Internal error."}, ""},
	} {
		d := newRig(t)
		d.group.reply = func(topics.PeerCommand) *topics.PeerReply { return &c.reply }
		g := d.proxy(`{"peerId":"tenant-a","content":"x","taskId":"t","agentId":"back","timeoutMs":2000}`)
		require.Equal(t, c.status, g.status, g.body)
		c.want.Code, c.want.TaskID, c.want.PeerID = c.reply.Code, "t", "tenant-a"
		require.Equal(t, c.want, g.fault(t))
		require.Equal(t, c.retry, g.header.Get("Retry-After"), g.body)
	}
}

func TestTextOfAPeerIsBounded(t *testing.T) {
	d := newRig(t)
	d.group.reply = func(topics.PeerCommand) *topics.PeerReply {
		return &topics.PeerReply{Code: "peer_refused", HTTPStatus: 500, Detail: strings.Repeat("x", 100_000)}
	}
	require.Less(t, len(d.proxy(task1).body), 10_000)
}

func TestRepeatedTaskForAPeer(t *testing.T) {
	d := newRig(t)
	other := d.group.door(d.clock)
	first := d.later(t.Context(), "POST", ProxyPath, task1, asJSON)
	d.commanded(topics.PeerDelegate, 1)
	d.group.settle("tenant-a", "t", topics.PeerReply{Body: body("t", peerwire.StatusSuccess, "42")})
	want := <-first
	require.Equal(t, 200, want.status)
	require.Equal(t, want.body, other.proxy(task1).body)
	g := other.proxy(strings.Replace(task1, "rows", "columns", 1))
	require.Equal(t, []any{409, "conflict"}, []any{g.status, g.fault(t).Code})
	d.group.full = true
	g = other.proxy(strings.Replace(task1, `"t"`, `"u"`, 1))
	require.Equal(t, []any{503, "no_room", "1"}, []any{g.status, g.fault(t).Code, g.header.Get("Retry-After")})
	d.group.err = errors.New("no brokers")
	g = other.proxy(task1)
	require.Equal(t, []any{500, "internal", "t"}, []any{g.status, g.fault(t).Code, g.fault(t).TaskID})
}

func TestAsynchronousTaskForAPeer(t *testing.T) {
	d := newRig(t)
	const async = "Prefer: respond-async"
	g := d.proxy(task1, async)
	require.Equal(t, []any{202, "respond-async", ""}, []any{g.status, g.header.Get("Preference-Applied"), g.header.Get("Location")})
	require.Equal(t, "{\n  \"taskId\": \"t\",\n  \"peerId\": \"tenant-a\",\n  \"status\": \"running\"\n}", g.body)
	sent := d.group.of(topics.PeerDelegate)[0]
	require.True(t, !sent.Once && sent.Detached)
	waiting := d.later(t.Context(), "POST", ProxyPath, task1, asJSON, "Prefer: respond-async, wait=60")
	d.commanded(topics.PeerAsk, 2)
	d.group.settle("tenant-a", "t", topics.PeerReply{Body: body("t", peerwire.StatusSuccess, "42")})
	require.Equal(t, 200, (<-waiting).status)
	d.group.set(func(g *group) { g.silent = true })
	silent := d.later(t.Context(), "POST", ProxyPath, task1, asJSON, async)
	require.NoError(t, d.clock.WaitTickers(t.Context(), 1))
	d.clock.Advance(answerTime)
	require.Equal(t, 503, (<-silent).status)
	require.Empty(t, d.group.of(topics.PeerLeave))
}

func TestCallerOfTheProxyLeaves(t *testing.T) {
	d := newRig(t)
	ctx, disconnect := context.WithCancel(context.Background())
	answer := d.later(ctx, "POST", ProxyPath, task1, asJSON)
	d.commanded(topics.PeerDelegate, 1)
	d.disconnected(disconnect)
	d.commanded(topics.PeerLeave, 1)
	require.Empty(t, <-answer)
	sent, leave := d.group.of(topics.PeerDelegate)[0], d.group.of(topics.PeerLeave)[0]
	require.Equal(t, topics.PeerCommand{Kind: topics.PeerLeave, TaskID: "t", PeerID: "tenant-a", Hash: sent.Hash, Waiter: sent.Waiter}, leave)
	require.Equal(t, d.group.sessions[0], d.group.sessions[1])

	// The group does not settle the task at its deadline.
	d.group.set(func(g *group) { g.silent = true })
	late := d.later(t.Context(), "POST", ProxyPath, task1, asJSON)
	require.NoError(t, d.clock.WaitTickers(t.Context(), 1))
	d.clock.Advance(30*time.Second + replyMargin)
	g := <-late
	require.Equal(t, []any{504, "timeout", int64(30_000)}, []any{g.status, g.fault(t).Code, g.fault(t).TimeoutMS})
	require.Len(t, d.group.of(topics.PeerLeave), 2)
}
