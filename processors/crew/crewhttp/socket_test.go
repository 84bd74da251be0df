package crewhttp

import (
	"testing"

	ws "github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

func TestS01_OnlySubscribersGetText(t *testing.T) {
	r := newRig(t)
	r.agent("a", "c", "")
	r.agent("b", "c", "")
	none, _ := r.open()
	all, _ := r.open()
	all.send(`{"type":"subscribe"}`)
	all.done()
	one, _ := r.open()
	one.send(`{"type":"subscribe","agentId":"a"}`)
	require.Equal(t, "a", one.next("agent:buffer").AgentID)
	one.done()

	r.text("a", "from a")
	r.text("b", "from b")
	r.index.flush()
	r.status("a", view.Idle)

	require.Equal(t, "a", none.next("agent:status").AgentID)
	require.Equal(t, "from a", all.next("agent:text").Text)
	require.Equal(t, "from b", all.next("agent:text").Text)
	all.next("agent:status")
	require.Equal(t, "from a", one.next("agent:text").Text)
	one.next("agent:status")
	raw := func(agent string) string {
		return `{"type":"agent:data","agentId":"` + agent + `","data":"from ` + agent + `"}`
	}
	require.Empty(t, none.data)
	require.Equal(t, []string{raw("a"), raw("b")}, all.data)
	require.Equal(t, []string{raw("a")}, one.data)
}

func TestS02_SubscriberGetsTheBufferAndNoTextAfterUnsubscribe(t *testing.T) {
	r := newRig(t, func(c *Config) { c.TextBuffer = 8 })
	r.agent("a", "c", "")
	r.text("a", "long ago: é")
	r.text("a", "12345")
	b, _ := r.open()
	b.send(`{"type":"subscribe","agentId":"a"}`)
	buffer := b.next("agent:buffer")
	require.Equal(t, " é12345", buffer.Data, "whole characters only")
	require.Equal(t, int64(2), buffer.Seq)
	r.text("a", "new")
	r.index.flush()
	f := b.next("agent:text")
	require.Equal(t, "new", f.Text)
	require.Equal(t, int64(3), f.Seq)

	b.send(`{"type":"subscribe","agentId":"future"}`)
	b.done()
	b.send(`{"type":"unsubscribe","agentId":"a"}`)
	b.done()
	r.text("a", "unseen")
	r.text("future", "seen")
	r.index.flush()
	require.Equal(t, "future", b.next("agent:text").AgentID)

	// An agent stays subscribed by "*".
	b.send(`{"type":"subscribe"}`)
	b.send(`{"type":"unsubscribe","agentId":"a"}`)
	b.done()
	r.text("a", "seen")
	r.index.flush()
	require.Equal(t, "a", b.next("agent:text").AgentID)
}

func TestS03_ProjectFilterPassesMatchingAndGlobalEvents(t *testing.T) {
	r := newRig(t)
	r.agent("a", "c1", "p1")
	r.agent("b", "c2", "p2")
	b, whole := r.open()
	require.Len(t, whole.Agents, 2)
	b.send(`{"type":"subscribe-project","projectId":"p1"}`)
	filtered := b.next("init")
	require.Len(t, filtered.Agents, 1)
	require.Equal(t, "a", filtered.Agents[0].ID)

	r.status("b", view.Idle)
	r.event("lead:decision", "crew/c2", "c2", "p2", `{"id":"d"}`)
	r.event("config:reloaded", "crew/none", "", "", `{}`)
	r.event("lead:decision", "crew/c1", "c1", "p1", `{"id":"d"}`)
	r.status("a", view.Idle)
	b.next("config:reloaded")
	require.Equal(t, "crew/c1", b.next("lead:decision").Subject)
	require.Equal(t, "a", b.next("agent:status").AgentID)

	b.send(`{"type":"subscribe-project","projectId":null}`)
	b.done()
	r.status("b", view.Running)
	require.Equal(t, "b", b.next("agent:status").AgentID)
}

func TestS04_InvalidJSONIsAnsweredAndUnknownTypesAreIgnored(t *testing.T) {
	r := newRig(t)
	r.agent("a", "c", "")
	b, _ := r.open()
	for _, text := range []string{"", "{", "null", "[]", `{"type":1}`, `{"type":"x","type":"y"}`} {
		b.send(text)
		require.Equal(t, invalidJSON, b.next("error").Message, text)
	}
	for _, text := range []string{`{}`, `{"type":"dance"}`, `{"type":"resize","agentId":"a","cols":80,"rows":24}`} {
		b.send(text)
	}
	b.send(`{"type":"subscribe","agentId":7}`)
	require.Contains(t, b.next("error").Message, "wrong type")
	r.status("a", view.Idle)
	b.next("agent:status")
}

func TestS05_ClientGetsAgentsLocksAndWhetherAllIsPaused(t *testing.T) {
	r := newRig(t)
	r.agent("lead", "c", "p", func(a *agentRow) {
		a.view.Role = topics.CrewRole{ID: "lead"}
		a.view.OutputPreview = "export API_KEY=hunter2hunter2"
		a.view.Permissions = []view.PermissionAsked{{ID: "g", ToolName: "Bash", Arguments: []byte(`{}`)}}
	})
	r.agent("child", "c", "p", func(a *agentRow) { a.view.ParentID = "lead" })
	r.agent("removed", "c", "p", func(a *agentRow) {
		a.view.Status, a.removedMS = view.Completed, noon.UnixMilli()
	})
	r.index.setCrew("c", crewFake{project: "p", paused: true}.row())
	r.index.setRepository("repo", locked(0, "a.go", "child", "p"))
	_, init := r.open()
	require.Len(t, init.Agents, 2)
	require.Equal(t, []string{"lead", "child"}, []string{init.Agents[1].ID, init.Agents[0].ID})
	lead := init.Agents[1]
	require.Equal(t, []string{"child"}, lead.ChildIDs)
	require.NotEmpty(t, lead.Role.Name, "the role is whole")
	require.Equal(t, "P", lead.ProjectName)
	require.Equal(t, "export API_KEY="+redacted, lead.OutputPreview)
	require.Equal(t, "g", lead.Permissions[0].ID)
	require.Contains(t, init.raw, `"locks":[{"filePath":"a.go"`)
	require.True(t, init.Paused)
	require.Contains(t, init.Seqs, "agent/lead")
}

// Text is shown in the place where the agent wrote it, however long it waits for more.
func TestTextIsShownBeforeLaterEventsOfItsAgent(t *testing.T) {
	r := newRig(t)
	r.agent("a", "c", "")
	b, _ := r.open()
	b.send(`{"type":"subscribe"}`)
	b.done()
	r.text("a", "one ")
	r.text("a", "two")
	r.status("a", view.Idle)
	r.text("a", "three")
	r.event("agent:message_sent", "crew/c", "c", "", `{"agentId":"a","content":"hi"}`)
	f := b.next("agent:text")
	require.Equal(t, "one two", f.Text)
	require.Equal(t, int64(1), f.FromSeq)
	require.Equal(t, int64(2), f.Seq)
	require.Equal(t, int64(3), b.next("agent:status").Seq)
	require.Equal(t, "three", b.next("agent:text").Text)
	b.next("agent:message_sent")
}

func TestTextIsShownAfterAShortTime(t *testing.T) {
	r := newRig(t)
	r.agent("a", "c", "")
	b, _ := r.open()
	b.send(`{"type":"subscribe"}`)
	b.done()
	done := make(chan struct{})
	ctx, cancel := contextOf(t)
	go func() {
		defer close(done)
		r.index.flushLate(ctx)
	}()
	r.text("a", "one ")
	require.NoError(t, r.clock.WaitTickers(t.Context(), 1))
	r.text("a", "two")
	r.clock.Advance(textDelay)
	require.Equal(t, "one two", b.next("agent:text").Text)
	cancel()
	<-done
}

func TestClientsResumeWithoutAGap(t *testing.T) {
	r := newRig(t, func(c *Config) { c.History = History{Events: 4} })
	r.agent("a", "c", "", func(a *agentRow) { a.seq = 2 })
	for _, status := range []string{view.Running, view.Idle} {
		r.status("a", status)
	}
	b, _ := r.open()
	b.send(`{"type":"subscribe"}`)
	b.send(`{"type":"resume","from":{"agent/a":2}}`)
	require.Zero(t, b.next("resumed").Replayed)
	r.status("a", view.Running) // 3
	r.text("a", "x")            // 4
	r.text("a", "y")            // 5
	r.status("a", view.Idle)    // 6
	for range 3 {
		_, err := b.read()
		require.NoError(t, err)
	}
	r.agent("a", "c", "", func(a *agentRow) { a.seq = 6 })
	c, _ := r.open()
	c.send(`{"type":"subscribe"}`)
	c.done()
	c.send(`{"type":"resume","from":{"agent/a":2,"agent/none":1}}`)
	require.Equal(t, int64(3), c.next("agent:status").Seq)
	f := c.next("agent:text")
	require.Equal(t, "xy", f.Text)
	require.Equal(t, []int64{4, 5}, []int64{f.FromSeq, f.Seq})
	require.Equal(t, int64(6), c.next("agent:status").Seq)
	require.Equal(t, "agent/none", c.next("resume_gap").Subject)
	require.Equal(t, 4, c.next("resumed").Replayed)
	c.send(`{"type":"resume","from":{"agent/a":1}}`)
	require.Equal(t, "agent/a", c.next("resume_gap").Subject, "event 2 is gone")
	c.next("resumed")
	r.status("a", view.Running)
	require.Equal(t, int64(7), c.next("agent:status").Seq)
}

// The table and the topic of events are read independently. A client misses nothing if the row is older than the events.
func TestInitIsFollowedByTheEventsThatItDoesNotInclude(t *testing.T) {
	r := newRig(t)
	r.agent("a", "c", "", func(a *agentRow) { a.seq = 1 })
	r.status("a", view.Running)
	r.status("a", view.Idle)
	b, init := r.open()
	require.Equal(t, int64(1), init.Seqs["agent/a"])
	require.Equal(t, int64(2), b.next("agent:status").Seq)

	// The row is newer: what it includes is shown again, which is harmless.
	r.agent("a", "c", "", func(a *agentRow) { a.seq = 9 })
	_, init = r.open()
	require.Equal(t, int64(2), init.Seqs["agent/a"])
}

func TestRepeatedEventsAreNotShown(t *testing.T) {
	r := newRig(t)
	r.agent("a", "c", "")
	b, _ := r.open()
	r.status("a", view.Running)
	r.seqs["agent/a"] = 0
	r.status("a", view.Running)
	r.status("a", view.Idle)
	require.Equal(t, int64(1), b.next("agent:status").Seq)
	require.Equal(t, int64(2), b.next("agent:status").Seq)
}

func TestSocketsAreClosedWithAStatus(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Authenticate = callers })
	for _, path := range []string{"/ws", "/ws?token=nobody"} {
		b, _, err := r.dial(path)
		require.NoError(t, err)
		code, _ := b.closed()
		require.Equal(t, StatusUnauthorized, code)
	}
	_, response, err := r.dial("/ws", "Authorization", "Bearer mira.write.all")
	require.Error(t, err)
	require.Equal(t, 403, response.StatusCode)
	for _, how := range [][]string{{"/ws?token=mira.read.all"}, {"/ws", "Cookie", "flightdeck-token=mira.read.all"}} {
		b, _, err := r.dial(how[0], how[1:]...)
		require.NoError(t, err)
		b.next("init")
		_ = b.CloseNow()
	}
	b, _ := r.open("Authorization", "Bearer mira.read.all")
	r.index.stop()
	code, _ := b.closed()
	require.Equal(t, ws.StatusGoingAway, code)
	late, _, err := r.dial("/ws?token=mira.read.all")
	require.NoError(t, err)
	code, _ = late.closed()
	require.Equal(t, ws.StatusGoingAway, code)
}

func TestCallersSeeTheirCrewsOnly(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Authenticate = callers })
	r.agent("a", "mira-1", "p")
	r.agent("b", "otto-1", "p")
	r.event("lock:acquired", "repository/repo", "", "", `{"filePath":"x","agentId":"b"}`)
	b, init := r.open("Authorization", "Bearer mira.read.mira-")
	require.Len(t, init.Agents, 1)
	require.NotContains(t, init.Seqs, "agent/b")
	b.send(`{"type":"subscribe"}`)
	b.send(`{"type":"subscribe","agentId":"b"}`)
	b.done()
	r.text("b", "secret")
	r.index.flush()
	r.status("b", view.Idle)
	r.event("config:reloaded", "crew/otto-1", "", "", `{}`)
	r.event("lock:released", "repository/repo", "", "", `{"filePath":"x"}`)
	b.send(`{"type":"resume","from":{"agent/b":0}}`)
	b.next("resume_gap")
	b.next("resumed")
	r.status("a", view.Idle)
	require.Equal(t, "a", b.next("agent:status").AgentID)
}
