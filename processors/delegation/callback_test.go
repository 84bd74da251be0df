package delegation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

func TestInjectCallbackConstructsCorrectMessage(t *testing.T) {
	p := newHarness(t)
	task := sent(t, p.Handle(p.delegation("call_1")))
	p.Now = p.Now.Add(time.Minute)
	es := p.Handle(p.completed(task, "42 boats"))
	m := onlyMessage(t, es)
	require.Equal(t, "s1", *m.SessionID, "the session of the caller")
	c := callbackOf(t, m)
	require.Equal(t, "[From: hand:research] Result of the delegation call_1 (completed), not written by the user:\n42 boats", c.content)
	require.Equal(t, topics.DelegationNote{
		CallbackID: "call_1", Status: topics.DelegationCompleted, Sender: "hand:research", Name: "research", Depth: 1,
	}, c.note)
	require.Equal(t, "slack", c.origin.Channel)
	require.Equal(t, "t1", c.origin.Thread)
	require.Equal(t, topics.Timestamp(p.Now), *m.Timestamp)
	require.True(t, strings.HasPrefix(c.request, "callback/"))
}

func TestCallbackSystemPromptInjected(t *testing.T) {
	p := newHarness(t)
	require.Equal(t, CallbackPrompt, onlyCallback(t, p.settle(p.completed(sent(t, p.Handle(p.delegation("a"))), "x"))).prompt)

	p = newHarness(t)
	task := sent(t, p.Handle(p.delegation("a")))
	require.Nil(t, memberOf(t, task.Message.Metadata, topics.MetaPrompt), "the task has no prompt of the conversation")
	p.config.Prompts = func(o topics.Origin) string {
		return "  Answer on " + o.Channel + "/" + o.Account + " like a pirate.\n"
	}
	c := onlyCallback(t, p.Handle(p.completed(task, "x")))
	require.Equal(t, "Answer on slack/main like a pirate.\n\n"+CallbackPrompt, c.prompt, "the settings in force; the callback prompt last")
	require.NotContains(t, c.content, "pirate")
	require.NotContains(t, c.content, CallbackPrompt, "it does not enter the history")

	for _, long := range []string{strings.Repeat("ü", maxPrompt), strings.Repeat("\x00", maxPrompt), " \n "} {
		p = newHarness(t)
		p.config.Prompts = func(topics.Origin) string { return long }
		c = onlyCallback(t, p.Handle(p.completed(sent(t, p.Handle(p.delegation("a"))), "x")))
		require.LessOrEqual(t, len(c.prompt), maxPrompt)
		require.True(t, strings.HasSuffix(c.prompt, CallbackPrompt))
	}
	require.Equal(t, CallbackPrompt, c.prompt, "a blank prompt is none")
}

func TestCallbackResponseRoutedToOriginalUser(t *testing.T) {
	p := newHarness(t)
	origin := chat("t7", "U7")
	origin.Group = true
	task := sent(t, p.Handle(p.delegation("a", from(origin))))
	require.Nil(t, memberOf(t, task.Message.Metadata, topics.MetaOrigin), "the target has no channel to answer on")
	c := onlyCallback(t, p.Handle(p.completed(task, "x")))
	require.Equal(t, origin, c.origin, "all of it, with the data of the adapter")
	require.Equal(t, origin.UserID(), *c.user, "as in their own messages")
	require.NotContains(t, c.origin.Recipient+c.origin.User, "hand:")
}

func TestAsyncContextStoredOnDelegation(t *testing.T) {
	p := newHarness(t)
	es := p.Handle(p.delegation("call_1", deep(1)))
	row := p.Read().Tasks[0]
	require.Equal(t, chat("t1", "U1"), originOf(row.Origin))
	require.EqualValues(t, 2, row.Depth)
	require.Equal(t, p.Now.Add(10*time.Minute).UnixMilli(), row.ExpiresMs)

	a := machinetest.Only[topics.ToolUseResult](t, es)
	require.Equal(t, "call_1", *a.ToolUseID)
	require.Equal(t, "turn/call_1/result", es[0].ID)
	require.EqualValues(t, 1, a.TotalTools)
	status, result := answerOf(t, es)
	require.Equal(t, "success", status)
	require.Equal(t, "dispatched", textOf(t, result, "status"))
	require.Equal(t, "call_1", textOf(t, result, "callback_id"))
	require.Equal(t, "true", string(memberOf(t, result, "announced")))
	require.Contains(t, textOf(t, result, "message"), "will be announced in this conversation")

	require.Equal(t, topics.Delegation{
		SessionID: "s1", CallbackID: "call_1", Agent: "front", Target: "research", Status: topics.DelegationOpen, Depth: 2,
		Channel: "slack", StartedMS: row.OpenedMs, DeadlineMS: row.ExpiresMs,
	}, machinetest.Only[topics.Delegation](t, es))

	s := sent(t, es)
	require.Equal(t, "research-message-input", s.Topic)
	require.Equal(t, `"count the boats"`, string(s.Message.Content))
	require.Equal(t, "slack/main/U1", *s.Message.UserID)
	task := taskOf(t, s)
	require.Equal(t, "front", task.Agent)
	require.Equal(t, "s1", task.SessionID)
	require.EqualValues(t, 2, task.Depth)
	require.True(t, strings.HasPrefix(*s.Message.SessionID, "delegated-"))
	require.True(t, strings.HasPrefix(textOf(t, s.Message.Metadata, "request_id"), "delegation/"))
}

func TestCallbackWithNoActiveSession(t *testing.T) {
	t.Run("no channel", func(t *testing.T) {
		p := newHarness(t)
		es := p.Handle(p.callOf(SendTool, "a", asking))
		_, result := answerOf(t, es)
		require.Equal(t, "false", string(memberOf(t, result, "announced")))
		require.Contains(t, textOf(t, result, "message"), "GET /api/delegations/a")
		es = p.Handle(p.completed(sent(t, es), "42 boats"))
		require.Empty(t, callbacks(es), "no turn that nobody sees")
		require.Equal(t, "42 boats", machinetest.Only[topics.Delegation](t, es).Result, "it can be read")
	})
	t.Run("no channel, announced in the session", func(t *testing.T) {
		p := newHarness(t, func(c *Config) { c.Sessions = true })
		es := p.Handle(p.callOf(SendTool, "a", asking))
		_, result := answerOf(t, es)
		require.Equal(t, "true", string(memberOf(t, result, "announced")))
		es = p.Handle(p.completed(sent(t, es), "42 boats"))
		m := callbacks(es)
		require.Len(t, m, 1)
		require.Equal(t, p.key, *m[0].SessionID)
		require.Contains(t, topics.Text(m[0].Content), "42 boats")
		_, has := topics.Lookup(m[0].Metadata, topics.MetaOrigin)
		require.False(t, has, "its answer goes nowhere else")
		_, has = topics.Lookup(m[0].Metadata, topics.MetaResult)
		require.True(t, has)
		es = p.Handle(p.callOf(SendTool, "purged", asking))
		p.Handle(p.control(topics.ActionPurge))
		require.Empty(t, callbacks(p.Handle(p.completed(sent(t, es), "x"))))
	})
	t.Run("session of a task", func(t *testing.T) {
		for _, session := range []string{"delegated-0123", "peer:0123"} {
			p := newHarness(t, func(c *Config) { c.Sessions = true })
			p.key = session
			es := p.Handle(p.callOf(SendTool, "a", asking))
			_, result := answerOf(t, es)
			require.Equal(t, "false", string(memberOf(t, result, "announced")))
			require.Empty(t, callbacks(p.Handle(p.completed(sent(t, es), "x"))), session)
		}
	})
	t.Run("origin that cannot be read", func(t *testing.T) {
		p := newHarness(t)
		es := p.Handle(p.callOf(SendTool, "a", asking, func(i *topics.ToolUseItem) { i.Origin = topics.Raw(`{"channel":"slack"}`) }))
		_, result := answerOf(t, es)
		require.Equal(t, "false", string(memberOf(t, result, "announced")))
		require.Empty(t, callbacks(p.Handle(p.completed(sent(t, es), "x"))))
	})
	t.Run("purged session", func(t *testing.T) {
		p := newHarness(t)
		task := sent(t, p.Handle(p.delegation("a")))
		es := p.Handle(p.control(topics.ActionPurge))
		late := p.Handle(p.completed(task, "42 boats"))
		require.Empty(t, callbacks(late))
		require.Empty(t, p.Handle(p.reply(machinetest.Only[topics.DelegationReply](t, es))))
	})
}

// One agent, two users at the same time: every result goes to the conversation that asked for it.
func TestInterleavedUsersGetTheirOwnResults(t *testing.T) {
	one, two := newHarness(t), newHarness(t)
	one.key, two.key = "s1", "s2"
	first := sent(t, one.Handle(one.delegation("call_1", from(chat("t1", "U1")))))
	second := sent(t, two.Handle(two.delegation("call_1", from(chat("t2", "U2")))))
	require.NotEqual(t, *first.Message.SessionID, *second.Message.SessionID, "equal tool_use_ids of two sessions are two tasks")
	require.NotEqual(t, taskOf(t, first).SessionID, taskOf(t, second).SessionID)
	require.Equal(t, "t2", onlyCallback(t, two.Handle(two.completed(second, "for two"))).origin.Thread)
	c := onlyCallback(t, one.Handle(one.completed(first, "for one")))
	require.Equal(t, "t1", c.origin.Thread)
	require.Equal(t, "for one", c.result())

	// Also two users of one session, such as a room without threads.
	p := newHarness(t)
	a := sent(t, p.Handle(p.delegation("a", from(chat("", "U1")))))
	b := sent(t, p.Handle(p.delegation("b", from(chat("", "U2")))))
	c = onlyCallback(t, p.Handle(p.completed(b, "x")))
	require.Equal(t, "U2", c.origin.User)
	p.Handle(p.completed(a, "y"))
	require.Equal(t, "U1", onlyCallback(t, p.Handle(p.output(c.request, "ok"))).origin.User)
}

func TestLaterCallWithoutAChannelGetsNoOldOrigin(t *testing.T) {
	p := newHarness(t)
	p.Handle(p.delegation("a"))
	es := p.Handle(p.callOf(SendTool, "b", asking))
	_, result := answerOf(t, es)
	require.Equal(t, "false", string(memberOf(t, result, "announced")))
	require.Nil(t, sent(t, es).Message.UserID)
	require.Empty(t, callbacks(p.Handle(p.completed(sent(t, es), "x"))))
}

func TestResultsAreAnnouncedOneAfterTheOther(t *testing.T) {
	p := newHarness(t)
	a, b, c := sent(t, p.Handle(p.delegation("a"))), sent(t, p.Handle(p.delegation("b"))), sent(t, p.Handle(p.delegation("c")))
	first := onlyCallback(t, p.Handle(p.completed(b, "B")))
	require.Empty(t, callbacks(p.Handle(p.completed(c, "C"))))
	require.Empty(t, callbacks(p.Handle(p.completed(a, "A"))))
	require.Empty(t, p.Handle(p.output("callback/another", "ok")))
	require.Empty(t, p.Handle(p.output("", "ok")))
	second := onlyCallback(t, p.Handle(p.output(first.request, "ok")))
	third := onlyCallback(t, p.Handle(p.output(second.request, "ok")))
	require.Equal(t, []string{"B", "C", "A"}, []string{first.result(), second.result(), third.result()})
	require.Empty(t, p.Handle(p.output(third.request, "ok")))
	require.Nil(t, p.Read().InFlight)
}

func TestNextResultWaitsForABoundedTime(t *testing.T) {
	p := newHarness(t)
	a, b := sent(t, p.Handle(p.delegation("a"))), sent(t, p.Handle(p.delegation("b")))
	p.Handle(p.completed(a, "A"))
	p.Handle(p.completed(b, "B"))
	require.Empty(t, callbacks(p.advance(15*time.Minute-time.Millisecond)))
	require.Equal(t, "B", onlyCallback(t, p.advance(time.Millisecond)).result())
	p.advance(25 * time.Hour)
	require.Nil(t, p.Read(), "nothing is kept")
}

func TestResultsAreData(t *testing.T) {
	for name, text := range map[string]string{"command": "/new", "empty": "", "line breaks": "a\r\nQUIT\r\nDATA", "no UTF-8": "a\xffb"} {
		t.Run(name, func(t *testing.T) {
			p := newHarness(t)
			c := onlyCallback(t, p.Handle(p.completed(sent(t, p.Handle(p.delegation("a"))), text)))
			require.True(t, strings.HasPrefix(c.content, "[From: hand:research] "))
			if text == "" {
				text = "The agent returned no text."
			}
			require.Equal(t, strings.ToValidUTF8(text, "\ufffd"), c.result())
		})
	}
}

func TestLongResultIsCutInTheMessageOnly(t *testing.T) {
	p := newHarness(t)
	text := "x" + strings.Repeat("ü", 40<<10)
	es := p.Handle(p.completed(sent(t, p.Handle(p.delegation("a b/ü"))), text))
	require.Equal(t, text, machinetest.Only[topics.Delegation](t, es).Result)
	c := onlyCallback(t, es)
	kept, note, found := strings.Cut(c.result(), "\n\n[Cut: ")
	require.True(t, found)
	require.Equal(t, text[:maxAnnounced-1], kept, "between two characters")
	require.Equal(t, "the first 32767 of 81921 bytes. All of it can be read at GET /api/delegations/a%20b%2F%C3%BC.]", note)
	require.Contains(t, c.content, "delegation a_b/_ (completed)", "an ID is no sentence")
}

func TestFailedDelegationsAreAnnouncedTheSameWay(t *testing.T) {
	p := newHarness(t)
	task := taskOf(t, sent(t, p.Handle(p.delegation("a"))))
	es := p.Handle(p.reply(topics.DelegationReply{
		SessionID: "s1", CallbackID: task.CallbackID, Status: topics.DelegationFailed, Content: "The model is down.", Code: "think_failed",
	}))
	c := onlyCallback(t, es)
	require.Contains(t, c.content, "(failed), not written by the user:\n(think_failed) The model is down.")
	require.Equal(t, CallbackPrompt, c.prompt)
	d := machinetest.Only[topics.Delegation](t, es)
	require.Equal(t, "think_failed", d.Code)
	require.Equal(t, "The model is down.", d.Error)
	require.Empty(t, machinetest.Values[topics.Control](es), "it has ended")
}

// The calls of a turn without turn.Config.Channels have neither an origin nor a depth.
func TestAnnouncementsThatDelegateAreLimitedWithoutTheTurnsHelp(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.Sessions = true })
	call := p.callOf(SendTool, "call_0", asking)
	for depth := range p.config.DepthLimit {
		s := sent(t, p.Handle(call))
		require.EqualValues(t, depth+1, taskOf(t, s).Depth)
		es := p.Handle(p.completed(s, "42 boats"))
		p.Handle(p.output(onlyCallback(t, es).request, "it is done"))
		i := slices.IndexFunc(es, func(e machine.Effect) bool { return e.Topic == p.topics.MessageInput.Name() })
		call = p.callOf(SendTool, fmt.Sprint("call_", depth+1), asking)
		call.ID = digests.Turn(p.key, es[i].ID) + "/1/tool/0"
	}
	requireFailed(t, p.Handle(call), failDepth)
	require.EqualValues(t, 1, taskOf(t, sent(t, p.Handle(p.callOf(SendTool, "other", asking)))).Depth, "another turn")
}
