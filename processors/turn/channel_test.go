package turn

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func withChannels(r *rules) { r.Channels = true }

// originFor is the origin of a user's message.
func originFor(user string) topics.Raw {
	return topics.EncodeOrigin(topics.Origin{
		Channel: "slack", Account: "main", Recipient: "C1", Thread: "7.1", MessageID: "m-" + user, User: user,
		Adapter: topics.Raw(`{"team":1.10}`),
	})
}

var task = topics.EncodeDelegationTask(topics.DelegationTask{Agent: "harbor", SessionID: "s9", CallbackID: "c1", Depth: 2})

func noteAt(depth int64) topics.Raw {
	return topics.EncodeDelegationNote(topics.DelegationNote{
		CallbackID: "c1", Status: topics.DelegationCompleted, Sender: "hand:pilot", Name: "pilot", Depth: depth,
	})
}

// channelMessage is a message with members of metadata.
func channelMessage(text string, members ...string) string {
	return fmt.Sprintf(`{"session_id":"s1","user_id":"mira","role":"user","content":%q,"timestamp":"t","metadata":{%s}}`,
		text, strings.Join(members, ","))
}

func member(name string, value topics.Raw) string { return fmt.Sprintf("%q:%s", name, value) }

func origin(user string) string { return member(topics.MetaOrigin, originFor(user)) }

func ephemeral(text string) string { return fmt.Sprintf("%q:%q", topics.MetaPrompt, text) }

func toOrigin(user string) string { return string(topics.OriginRoute(originFor(user), nil)) }

func TestOriginTravelsToToolsGatesAndTheOutput(t *testing.T) {
	p := newPlay(t, withChannels, withPolicy(paying()))
	asked := the[enriched](t, p.send("message-input", channelMessage("pay", `"request_id":"r1"`, origin("ann"), `"x":1.10`)))
	require.JSONEq(t, channelMessage("pay", `"request_id":"r1"`, `"x":1.10`), string(asked.LatestInput), "the model does not see it")
	require.Equal(t, string(originFor("ann")), string(p.state().Turn.Message.Origin))
	require.EqualValues(t, rowChannels, p.state().Version)

	out := p.respond(asked, callingFor(wanted{"t1", "pay", payment}, wanted{"t2", "look", `{"origin":{"channel":"forged"}}`}))
	call := the[called](t, out)
	require.Equal(t, "t2", *call.ToolUseID)
	require.Equal(t, string(originFor("ann")), string(call.Origin))
	require.Zero(t, call.Depth)
	gate := the[gateRequested](t, out)
	require.Equal(t, string(originFor("ann")), string(gate.Channel))

	approved := the[called](t, p.send("gate-outcomes", gateEnd(gate, topics.GateApproved)))
	require.Equal(t, string(originFor("ann")), string(approved.Origin), "a call that waited has it, too")
	p.result("t2", "x")
	asked = the[enriched](t, p.resultFrom("pay", "t1", "paid"))
	require.NotContains(t, string(asked.History), topics.MetaOrigin)
	o := the[answered](t, p.respond(asked, saying("done")))
	require.Equal(t, toOrigin("ann"), string(o.ReplyTo))
	require.Equal(t, "r1", *o.RequestID)
	require.LessOrEqual(t, p.state().Version, uint32(rowGates), "a session without messages of channels is one for older builds")
}

func TestWithoutTheOptionTheMembersAreOrdinaryMetadata(t *testing.T) {
	p := newPlay(t)
	m := channelMessage("one", origin("ann"), ephemeral("x"), member(topics.MetaTask, task), member(topics.MetaResult, noteAt(1)))
	asked := the[enriched](t, p.send("message-input", m))
	require.JSONEq(t, m, string(asked.LatestInput))
	require.Empty(t, asked.EphemeralPrompt)
	called := the[called](t, p.respond(asked, calling("t1")))
	require.Nil(t, called.Origin)
	require.Zero(t, called.Depth)
	o := the[answered](t, p.respond(the[enriched](t, p.result("t1", "x")), saying("done")))
	require.Nil(t, o.ReplyTo)
	require.LessOrEqual(t, p.state().Version, uint32(rowGates))
}

func TestQueuedMessagesOfTwoUsersKeepTheirOwnOrigins(t *testing.T) {
	p := newPlay(t, withChannels)
	asked := the[enriched](t, p.send("message-input", channelMessage("one", origin("ann"))))
	require.Empty(t, p.send("message-input", channelMessage("two", origin("bob"))))
	require.Empty(t, p.send("message-input", channelMessage("three", origin("ann"))))
	require.Empty(t, p.send("message-input", message("four")))
	for _, want := range []string{"ann", "bob", "ann", ""} {
		called := the[called](t, p.respond(asked, calling("t-"+want+asked.timeText())))
		out := p.respond(the[enriched](t, p.result(*called.ToolUseID, "x")), saying("done"))
		o := the[answered](t, out)
		if want == "" {
			require.Nil(t, called.Origin)
			require.Nil(t, o.ReplyTo)
			break
		}
		require.Equal(t, string(originFor(want)), string(called.Origin))
		require.Equal(t, toOrigin(want), string(o.ReplyTo))
		asked = the[enriched](t, out)
		p.now = p.now.Add(time.Second)
	}
}

func (m enriched) timeText() string { return *m.Timestamp }

func TestErrorOutputsOfEveryKindGoToTheOrigin(t *testing.T) {
	ann, bob := channelMessage("one", origin("ann")), channelMessage("two", `"request_id":"r2"`, origin("bob"))
	long := channelMessage(strings.Repeat("x", minRecord), origin("bob"))
	for name, c := range map[string]struct {
		rules func(*rules)
		run   func(p *play) effects
		code  topics.Code
		to    string
	}{
		"invalid": {nil, func(p *play) effects {
			return p.send("message-input", channelMessage("one", `"request_id":{}`, origin("ann")))
		}, topics.CodeInvalidMessage, "ann"},
		"busy": {func(r *rules) { r.Policy = Reject }, func(p *play) effects {
			p.send("message-input", ann)
			return p.send("message-input", bob)
		}, topics.CodeBusy, "bob"},
		"queue full": {func(r *rules) { r.QueueLimit = 1 }, func(p *play) effects {
			p.send("message-input", message("one"))
			p.send("message-input", ann)
			return p.send("message-input", bob)
		}, topics.CodeQueueFull, "bob"},
		"cancelled while it waits": {nil, func(p *play) effects {
			p.send("message-input", ann)
			p.send("message-input", bob)
			return p.send("session-control", `{"action":"cancel","request_id":"r2"}`)
		}, topics.CodeCancelled, "bob"},
		"cancelled": {nil, func(p *play) effects {
			p.send("message-input", ann)
			return p.send("session-control", `{"action":"cancel"}`)
		}, topics.CodeCancelled, "ann"},
		"purged": {nil, func(p *play) effects {
			p.send("message-input", ann)
			return p.send("session-control", `{"action":"purge"}`)
		}, topics.CodeCancelled, "ann"},
		"think timeout": {nil, func(p *play) effects {
			p.send("message-input", ann)
			return p.wait(p.rules.ThinkTimeout)
		}, topics.CodeThinkTimeout, "ann"},
		"think failed": {nil, func(p *play) effects {
			asked := the[enriched](t, p.send("message-input", ann))
			return p.send("think-dlq", fmt.Sprintf(`{"latest_input":%s}`, asked.LatestInput))
		}, topics.CodeThinkFailed, "ann"},
		"too many steps": {func(r *rules) { r.MaxSteps = 1 }, func(p *play) effects {
			return p.respond(the[enriched](t, p.send("message-input", ann)), calling("t1"))
		}, topics.CodeTooManySteps, "ann"},
		"over budget": {func(r *rules) { r.MaxCost = 0.1 }, func(p *play) effects {
			p.respond(p.ask("one"), saying("x"))
			return p.send("message-input", ann)
		}, topics.CodeOverBudget, "ann"},
		"too large for a record": {smallRow, func(p *play) effects {
			return p.send("message-input", long)
		}, topics.CodeTooLarge, "bob"},
		"too large for the row": {nil, func(p *play) effects {
			p.fillForGood(0, 0)
			p.rules.RowLimit = 200 << 10
			return p.send("message-input", ann)
		}, topics.CodeTooLarge, "ann"},
		"defect": {nil, func(p *play) effects {
			return effects(defect([]byte{0xff}, p.recordOf("message-input", ann), errBroken, p.now, p.rules).Effects)
		}, topics.CodeInternal, "ann"},
		"defect with a request": {nil, func(p *play) effects {
			return effects(defect([]byte{0xff}, p.recordOf("message-input", bob), errBroken, p.now, p.rules).Effects)
		}, topics.CodeInternal, "bob"},
		"abandoned": {nil, func(p *play) effects {
			p.send("message-input", ann)
			return effects(abandon(p.state(), p.key, internal, p.now, p.rules).Effects)
		}, topics.CodeInternal, "ann"},
		"erased": {nil, func(p *play) effects {
			p.send("message-input", ann)
			return effects(eraseState(p.state(), p.recordOf("session-control", `{"action":"purge"}`).source(), p.now, p.rules).Effects)
		}, topics.CodeCancelled, "ann"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, withChannels)
			if c.rules != nil {
				c.rules(&p.rules)
			}
			// Routes of others, which no message of a channel may take.
			if name != "too large for the row" {
				p.send("reply-to", `{"to":"somebody"}`)
				p.send("reply-to", `{"to":"r2","request_id":"r2"}`)
				if strings.HasPrefix(name, "queue") || strings.HasPrefix(name, "over") {
					p.tombstone("reply-to")
				}
			}
			o := the[answered](t, c.run(p))
			require.Equal(t, c.code, o.Error.Code)
			require.Equal(t, toOrigin(c.to), string(o.ReplyTo))
		})
	}
}

func TestMessageWithInvalidMembersGetsAnErrorOutput(t *testing.T) {
	long := strings.Repeat("x", maxPrompt+1)
	for name, c := range map[string]struct {
		members []string
		to      string
	}{
		"origin is no object":    {[]string{`"turntable_origin":"hunter2"`}, ""},
		"origin is null":         {[]string{`"turntable_origin":null`}, ""},
		"origin without account": {[]string{`"turntable_origin":{"channel":"hunter2","recipient":"r"}`}, ""},
		"origin too large":       {[]string{`"turntable_origin":{"channel":"c","account":"a","recipient":"` + long + `"}`}, ""},
		"task without a caller":  {[]string{`"turntable_delegation":{"depth":1}`, origin("ann")}, toOrigin("ann")},
		"task of no depth": {[]string{
			`"turntable_delegation":{"agent":"a","session_id":"s","callback_id":"c","depth":0}`,
		}, ""},
		"task too large":       {[]string{`"turntable_delegation":{"agent":"a","session_id":"` + long + `","callback_id":"c","depth":1}`}, ""},
		"note without a call":  {[]string{`"turntable_delegation_result":{"sender":"hand:hunter2"}`, origin("ann")}, toOrigin("ann")},
		"note of depth -1":     {[]string{member(topics.MetaResult, noteAt(-1)), origin("ann")}, toOrigin("ann")},
		"prompt is no text":    {[]string{`"turntable_ephemeral_prompt":["hunter2"]`, origin("ann")}, toOrigin("ann")},
		"prompt is a number":   {[]string{`"turntable_ephemeral_prompt":5`, origin("ann")}, toOrigin("ann")},
		"prompt too long":      {[]string{ephemeral(long), origin("ann")}, toOrigin("ann")},
		"origin and something": {[]string{`"turntable_origin":{}`, ephemeral(long), member(topics.MetaTask, task)}, string(topics.DelegationRoute(task))},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, withChannels)
			p.send("reply-to", `{"to":"somebody"}`)
			p.send("reply-to", `{"to":"r1","request_id":"r1"}`)
			for _, request := range []string{`"x":1`, `"request_id":"r1"`} {
				out := p.send("message-input", channelMessage("one", append(c.members, request)...))
				require.Empty(t, emitted[enriched](out))
				o := the[answered](t, out)
				require.Equal(t, topics.CodeInvalidMessage, o.Error.Code)
				require.Equal(t, c.to, string(o.ReplyTo), "no route of somebody else")
				require.NotContains(t, o.Content, "hunter2")
				require.Less(t, len(o.Content), 200)
			}
			require.Len(t, p.state().Routes, 2)
		})
	}
}

func TestMessagesOfChannelsLeaveReplyRoutesToOthers(t *testing.T) {
	p := newPlay(t, withChannels)
	asked := the[enriched](t, p.send("message-input", channelMessage("one", origin("ann"))))
	p.send("reply-to", `{"to":"somebody"}`) // after the message of the channel, which has no request id
	require.Nil(t, p.state().Turn.Message.Route)
	p.now = p.now.Add(time.Second)
	require.Empty(t, p.send("message-input", message("two")))
	out := p.respond(asked, saying("first"))
	require.Equal(t, toOrigin("ann"), string(the[answered](t, out).ReplyTo))
	out = p.respond(the[enriched](t, out), saying("second"))
	require.Equal(t, `{"to":"somebody"}`, string(the[answered](t, out).ReplyTo))
}

func TestEphemeralPromptLastsOneTurn(t *testing.T) {
	const prompt = "Present \"the\" findings.\n"
	p := newPlay(t, withChannels)
	asked := the[enriched](t, p.send("message-input", channelMessage("one", origin("ann"), ephemeral(prompt))))
	require.Empty(t, p.send("message-input", channelMessage("two", origin("ann"))))
	for _, id := range []string{"t1", "t2", "t3"} {
		require.Equal(t, prompt, asked.EphemeralPrompt)
		p.restart() // it is in the row
		p.respond(asked, calling(id))
		asked = the[enriched](t, p.result(id, "x"))
	}
	require.Equal(t, prompt, asked.EphemeralPrompt)
	next := the[enriched](t, p.respond(asked, saying("done")))
	require.Empty(t, next.EphemeralPrompt)
	p.respond(next, saying("done"))
	require.NotContains(t, string(p.row), "findings")
	require.NotContains(t, string(p.state().History), "findings")
	last := p.ask("three")
	require.Empty(t, last.EphemeralPrompt)
	require.NotContains(t, string(last.History), "findings")
	require.NotContains(t, string(last.History), "turntable_")
}

// A prompt that protobuf cannot store as it is does not stop the session.
func TestPromptWithALoneSurrogateIsKept(t *testing.T) {
	p := newPlay(t, withChannels)
	for _, text := range []string{`a\ud800b`} {
		asked := the[enriched](t, p.send("message-input", channelMessage("one", origin("ann"), `"turntable_ephemeral_prompt":"`+text+`"`)))
		require.Equal(t, "a\ufffdb", asked.EphemeralPrompt)
		p.respond(asked, saying("done"))
	}
	asked := the[enriched](t, p.send("message-input", channelMessage("one", ephemeral(" \n"))))
	require.Empty(t, asked.EphemeralPrompt, "a blank prompt is none")
	require.LessOrEqual(t, p.state().Version, uint32(rowGates))
}

func TestPromptWithoutAnOriginLeavesTheMessageItsRoute(t *testing.T) {
	p := newPlay(t, withChannels)
	p.send("reply-to", `{"to":"somebody"}`)
	asked := the[enriched](t, p.send("message-input", channelMessage("one", ephemeral("In one line."))))
	require.Equal(t, "In one line.", asked.EphemeralPrompt)
	require.Equal(t, `{"to":"somebody"}`, string(the[answered](t, p.respond(asked, saying("done"))).ReplyTo))
}
