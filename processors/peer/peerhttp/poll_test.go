package peerhttp

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/topics"
)

// locate returns the address of a Location, as a client resolves it.
func (d *rig) locate(g got) string {
	d.t.Helper()
	base, err := url.Parse(d.http.URL + DelegatePath)
	require.NoError(d.t, err)
	at, err := base.Parse(g.header.Get("Location"))
	require.NoError(d.t, err)
	return at.EscapedPath()
}

func TestAsynchronousTaskIsPolled(t *testing.T) {
	for _, id := range []string{"t-9", "a/b c?d#e%", "..", ".", "größe ✓", "x:y"} {
		d := newRig(t)
		other := d.group.door(d.clock)
		body := `{"taskId":"` + id + `","parentInstanceId":"hq-1","content":"x"}`
		g := d.delegate(body, t2, "Prefer: respond-async")
		require.Equal(t, []any{202, "respond-async"}, []any{g.status, g.header.Get("Preference-Applied")}, id)
		require.Equal(t, "{\n  \"taskId\": \""+id+"\",\n  \"status\": \"running\"\n}", g.body)
		require.Equal(t, []topics.PeerCommandKind{topics.PeerRun, topics.PeerAsk}, d.group.kinds())
		require.True(t, d.group.of(topics.PeerRun)[0].Detached)

		at := d.locate(g)
		poll := other.do("GET", at, "", t2)
		require.Equal(t, []any{202, g.body, ""}, []any{poll.status, poll.body, poll.header.Get("Preference-Applied")}, at)
		require.Equal(t, 404, other.do("GET", at, "", t3).status, "the task of another peer")
		waiting := other.later(t.Context(), "GET", at+"?wait=25s", "", t2)
		d.commanded(topics.PeerAsk, 4)
		d.group.finish("partner-b", id, "42 rows")
		done := <-waiting
		require.Equal(t, 200, done.status)
		require.Equal(t, done.body, d.do("GET", at, "", t2).body)
		require.Equal(t, done.body, d.delegate(body, t2).body)
		require.Equal(t, done.body, d.delegate(body, t2, "Prefer: respond-async").body)
		require.Zero(t, d.handler.slots.len())
	}
}

func TestWaitOfAnAsynchronousTask(t *testing.T) {
	d := newRig(t)
	// It ends during the wait.
	answer := d.later(t.Context(), "POST", DelegatePath, requestOf("a"), t2, "Prefer: respond-async, wait=30")
	require.NoError(t, d.clock.WaitTickers(t.Context(), 2))
	d.group.finish("partner-b", "a", "42 rows")
	require.Equal(t, 200, (<-answer).status)
	// It does not.
	answer = d.later(t.Context(), "POST", DelegatePath, requestOf("b"), t2, "Prefer: respond-async, wait=30")
	d.commanded(topics.PeerRun, 2)
	require.NoError(t, d.clock.WaitTickers(t.Context(), 2))
	d.clock.Advance(30*time.Second - time.Millisecond)
	require.Empty(t, answer)
	d.clock.Advance(time.Millisecond)
	require.Equal(t, 202, (<-answer).status)
	// The group does not say that it runs.
	d.group.set(func(g *group) { g.silent = true })
	answer = d.later(t.Context(), "POST", DelegatePath, requestOf("c"), t2, "Prefer: respond-async, wait=5")
	require.NoError(t, d.clock.WaitTickers(t.Context(), 2))
	d.clock.Advance(5 * time.Second) // the task may not be accepted
	require.NoError(t, d.clock.WaitTickers(t.Context(), 2))
	require.Never(t, func() bool { return len(answer) > 0 }, 50*time.Millisecond, 5*time.Millisecond)
	d.clock.Advance(answerTime)
	require.Equal(t, 503, (<-answer).status)
	// Another task has the ID.
	d.group.set(func(g *group) { g.silent = false })
	g := d.delegate(requestOf("b", `,"model":"m"`), t2, "Prefer: respond-async")
	require.Equal(t, []any{409, "conflict"}, []any{g.status, g.fault(t).Code})
}

func TestDetachedTaskIsNotLeft(t *testing.T) {
	d := newRig(t)
	ctx, disconnect := context.WithCancel(context.Background())
	answer := d.later(ctx, "POST", DelegatePath, requestOf("t"), t2, "Prefer: respond-async, wait=30")
	require.NoError(t, d.clock.WaitTickers(t.Context(), 2))
	disconnect()
	require.Empty(t, <-answer)
	d.eventually(func() bool { return d.handler.peers.Len() == 0 })
	require.Equal(t, []topics.PeerCommandKind{topics.PeerRun, topics.PeerAsk}, d.group.kinds())
	require.Equal(t, 1, d.handler.slots.len())
}

func TestTaskIDThatIsTooLongForAPathIsAnsweredSynchronously(t *testing.T) {
	d := newRig(t)
	d.group.reply = succeed
	id := ""
	for range peerwire.MaxID {
		id += "日"
	}
	g := d.delegate(requestOf(id), t2, "Prefer: respond-async")
	require.Equal(t, []any{200, ""}, []any{g.status, g.header.Get("Preference-Applied")})
	require.False(t, d.group.of(topics.PeerRun)[0].Detached)
}

func TestCallbackIsOfTheTokensService(t *testing.T) {
	d := newRig(t)
	require.Equal(t, 202, d.delegate(requestOf("t", `,"callback":{"token":"C 1"}`), t4, "Prefer: respond-async").status)
	run := d.group.of(topics.PeerRun)[0]
	require.Equal(t, []string{"d-callback", "C 1"}, []string{run.CallbackService, run.CallbackToken})
	require.NotContains(t, string(run.Request), "C 1", "the token is stored once")
}

func TestTaskIsCancelled(t *testing.T) {
	var events []auth.AuditEvent
	d := newRig(t, func(c *Config) { c.Audit = func(e auth.AuditEvent) { events = append(events, e) } })
	require.Equal(t, 202, d.delegate(requestOf("t"), t2, "Prefer: respond-async").status)
	g := d.do("DELETE", TasksPath+"t", "", t3)
	require.Equal(t, []any{404, "unknown_task"}, []any{g.status, g.fault(t).Code}, "the task of another peer")
	g = d.do("DELETE", TasksPath+"t", "", t2)
	require.Equal(t, 200, g.status)
	require.Contains(t, g.body, `"error": "cancelled"`)
	require.Equal(t, g.body, d.do("DELETE", TasksPath+"t?wait=5s", "", t2).body, "it stays cancelled")
	require.Zero(t, d.handler.slots.len())
	require.Equal(t, []auth.AuditAction{auth.AuditWrite, auth.AuditCancel, auth.AuditCancel, auth.AuditCancel}, []auth.AuditAction{
		events[0].Action, events[1].Action, events[2].Action, events[3].Action,
	})
	require.Equal(t, []string{"peer partner-b", "t", peerwire.SessionID("partner-b", "t")}, []string{
		events[2].Subject, events[2].RequestID, events[2].Session,
	})
}

func TestRefusedPolls(t *testing.T) {
	d := newRig(t)
	for _, method := range []string{"GET", "DELETE"} {
		for _, c := range []struct {
			path, header string
			status       int
			code         string
		}{
			{TasksPath + "t", "X: y", 401, "missing_token"},
			{TasksPath + "t", "Authorization: Bearer T9", 401, "unknown_token"},
			{TasksPath + "t?wait=soon", t2, 400, "invalid_request"},
			{TasksPath + "t?wait=-1s", t2, 400, "invalid_request"},
			{TasksPath + "t", t2, 404, "unknown_task"},
			{TasksPath + "t?wait=60", t2, 404, "unknown_task"},
		} {
			g := d.do(method, c.path, "", c.header)
			require.Equal(t, []any{c.status, c.code}, []any{g.status, g.fault(t).Code}, "%s %s", method, c.path)
		}
	}
	d.group.silent = true
	answer := d.later(t.Context(), "GET", TasksPath+"t", "", t2)
	require.NoError(t, d.clock.WaitTickers(t.Context(), 1))
	d.clock.Advance(answerTime)
	require.Equal(t, 503, (<-answer).status)
	d.configure(`{"enabled":false}`)
	require.Equal(t, 503, d.do("GET", TasksPath+"t", "", t2).status)
}

func TestPreferenceHeader(t *testing.T) {
	for _, c := range []struct {
		values []string
		want   preference
	}{
		{nil, preference{}},
		{[]string{""}, preference{}},
		{[]string{"respond-async"}, preference{async: true}},
		{[]string{"respond-async, wait=25"}, preference{true, 25 * time.Second}},
		{[]string{"wait=25", "Respond-Async"}, preference{true, 25 * time.Second}},
		{[]string{`  RESPOND-ASYNC ; x="a, wait=9" ,, WAIT = "7" ;b`}, preference{true, 7 * time.Second}},
		{[]string{"wait=5, wait=9"}, preference{wait: 5 * time.Second}},
		{[]string{"wait=3600"}, preference{wait: time.Minute}},
		{[]string{"wait=99999999999999999999999"}, preference{wait: time.Minute}},
		{[]string{"wait=-1, respond-async"}, preference{async: true}},
		{[]string{"wait=1.5, wait=2"}, preference{}},
		{[]string{"wait=", "respond-async=x"}, preference{}},
		{[]string{`respond-async=""`}, preference{async: true}},
		{[]string{`foo="a\", respond-async`}, preference{}},
		{[]string{"return=minimal, handling=lenient"}, preference{}},
	} {
		require.Equal(t, c.want, preferenceOf(c.values), c.values)
	}
}
