package turn

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/turntable-streams/turntable/topics"
)

func withChannels(r *Rules) { r.Channels = true }

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
	asked := the[Enriched](t, p.send("message-input", channelMessage("pay", `"request_id":"r1"`, origin("ann"), `"x":1.10`)))
	require.JSONEq(t, channelMessage("pay", `"request_id":"r1"`, `"x":1.10`), string(asked.LatestInput), "the model does not see it")
	require.Equal(t, string(originFor("ann")), string(p.state().Turn.Message.Origin))
	require.EqualValues(t, rowChannels, p.state().Version)

	out := p.respond(asked, callingFor(wanted{"t1", "pay", payment}, wanted{"t2", "look", `{"origin":{"channel":"forged"}}`}))
	called := the[Called](t, out)
	require.Equal(t, "t2", *called.ToolUseID)
	require.Equal(t, string(originFor("ann")), string(called.Origin))
	require.Zero(t, called.Depth)
	gate := the[GateRequested](t, out)
	require.Equal(t, string(originFor("ann")), string(gate.Channel))

	approved := the[Called](t, p.send("gate-outcomes", outcome(gate, topics.GateApproved)))
	require.Equal(t, string(originFor("ann")), string(approved.Origin), "a call that waited has it, too")
	p.result("t2", "x")
	asked = the[Enriched](t, p.resultFrom("pay", "t1", "paid"))
	require.NotContains(t, string(asked.History), topics.MetaOrigin)
	o := the[Answered](t, p.respond(asked, saying("done")))
	require.Equal(t, toOrigin("ann"), string(o.ReplyTo))
	require.Equal(t, "r1", *o.RequestID)
	require.LessOrEqual(t, p.state().Version, uint32(rowGates), "a session without messages of channels is one for older builds")
}

func TestWithoutTheOptionTheMembersAreOrdinaryMetadata(t *testing.T) {
	p := newPlay(t)
	m := channelMessage("one", origin("ann"), ephemeral("x"), member(topics.MetaTask, task), member(topics.MetaResult, noteAt(1)))
	asked := the[Enriched](t, p.send("message-input", m))
	require.JSONEq(t, m, string(asked.LatestInput))
	require.Empty(t, asked.EphemeralPrompt)
	called := the[Called](t, p.respond(asked, calling("t1")))
	require.Nil(t, called.Origin)
	require.Zero(t, called.Depth)
	o := the[Answered](t, p.respond(the[Enriched](t, p.result("t1", "x")), saying("done")))
	require.Nil(t, o.ReplyTo)
	require.LessOrEqual(t, p.state().Version, uint32(rowGates))
}

func TestQueuedMessagesOfTwoUsersKeepTheirOwnOrigins(t *testing.T) {
	p := newPlay(t, withChannels)
	asked := the[Enriched](t, p.send("message-input", channelMessage("one", origin("ann"))))
	require.Empty(t, p.send("message-input", channelMessage("two", origin("bob"))))
	require.Empty(t, p.send("message-input", channelMessage("three", origin("ann"))))
	require.Empty(t, p.send("message-input", message("four")))
	for _, want := range []string{"ann", "bob", "ann", ""} {
		called := the[Called](t, p.respond(asked, calling("t-"+want+asked.timeText())))
		out := p.respond(the[Enriched](t, p.result(*called.ToolUseID, "x")), saying("done"))
		o := the[Answered](t, out)
		if want == "" {
			require.Nil(t, called.Origin)
			require.Nil(t, o.ReplyTo)
			break
		}
		require.Equal(t, string(originFor(want)), string(called.Origin))
		require.Equal(t, toOrigin(want), string(o.ReplyTo))
		asked = the[Enriched](t, out)
		p.now = p.now.Add(time.Second)
	}
}

func (m Enriched) timeText() string { return *m.Timestamp }

func TestErrorOutputsOfEveryKindGoToTheOrigin(t *testing.T) {
	ann, bob := channelMessage("one", origin("ann")), channelMessage("two", `"request_id":"r2"`, origin("bob"))
	long := channelMessage(strings.Repeat("x", minRecord), origin("bob"))
	for name, c := range map[string]struct {
		rules func(*Rules)
		run   func(p *play) effects
		code  topics.Code
		to    string
	}{
		"invalid": {nil, func(p *play) effects {
			return p.send("message-input", channelMessage("one", `"request_id":{}`, origin("ann")))
		}, topics.CodeInvalidMessage, "ann"},
		"busy": {func(r *Rules) { r.Policy = Reject }, func(p *play) effects {
			p.send("message-input", ann)
			return p.send("message-input", bob)
		}, topics.CodeBusy, "bob"},
		"queue full": {func(r *Rules) { r.QueueLimit = 1 }, func(p *play) effects {
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
			asked := the[Enriched](t, p.send("message-input", ann))
			return p.send("think-dlq", fmt.Sprintf(`{"latest_input":%s}`, asked.LatestInput))
		}, topics.CodeThinkFailed, "ann"},
		"too many steps": {func(r *Rules) { r.MaxSteps = 1 }, func(p *play) effects {
			return p.respond(the[Enriched](t, p.send("message-input", ann)), calling("t1"))
		}, topics.CodeTooManySteps, "ann"},
		"over budget": {func(r *Rules) { r.MaxCost = 0.1 }, func(p *play) effects {
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
			return effects(abandon(p.state(), p.key, p.now, p.rules).Effects)
		}, topics.CodeInternal, "ann"},
		"erased": {nil, func(p *play) effects {
			p.send("message-input", ann)
			return effects(eraseState(p.state(), p.recordOf("session-control", `{"action":"purge"}`).record(), p.now, p.rules).Effects)
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
			o := the[Answered](t, c.run(p))
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
				require.Empty(t, emitted[Enriched](out))
				o := the[Answered](t, out)
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
	asked := the[Enriched](t, p.send("message-input", channelMessage("one", origin("ann"))))
	p.send("reply-to", `{"to":"somebody"}`) // after the message of the channel, which has no request id
	require.Nil(t, p.state().Turn.Message.Route)
	p.now = p.now.Add(time.Second)
	require.Empty(t, p.send("message-input", message("two")))
	out := p.respond(asked, saying("first"))
	require.Equal(t, toOrigin("ann"), string(the[Answered](t, out).ReplyTo))
	out = p.respond(the[Enriched](t, out), saying("second"))
	require.Equal(t, `{"to":"somebody"}`, string(the[Answered](t, out).ReplyTo))
}

func TestEphemeralPromptLastsOneTurn(t *testing.T) {
	const prompt = "Present \"the\" findings.\n"
	p := newPlay(t, withChannels)
	asked := the[Enriched](t, p.send("message-input", channelMessage("one", origin("ann"), ephemeral(prompt))))
	require.Empty(t, p.send("message-input", channelMessage("two", origin("ann"))))
	for _, id := range []string{"t1", "t2", "t3"} {
		require.Equal(t, prompt, asked.EphemeralPrompt)
		p.restart() // it is in the row
		p.respond(asked, calling(id))
		asked = the[Enriched](t, p.result(id, "x"))
	}
	require.Equal(t, prompt, asked.EphemeralPrompt)
	next := the[Enriched](t, p.respond(asked, saying("done")))
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
		asked := the[Enriched](t, p.send("message-input", channelMessage("one", origin("ann"), `"turntable_ephemeral_prompt":"`+text+`"`)))
		require.Equal(t, "a\ufffdb", asked.EphemeralPrompt)
		p.respond(asked, saying("done"))
	}
	asked := the[Enriched](t, p.send("message-input", channelMessage("one", ephemeral(" \n"))))
	require.Empty(t, asked.EphemeralPrompt, "a blank prompt is none")
	require.LessOrEqual(t, p.state().Version, uint32(rowGates))
}

func TestPromptWithoutAnOriginLeavesTheMessageItsRoute(t *testing.T) {
	p := newPlay(t, withChannels)
	p.send("reply-to", `{"to":"somebody"}`)
	asked := the[Enriched](t, p.send("message-input", channelMessage("one", ephemeral("In one line."))))
	require.Equal(t, "In one line.", asked.EphemeralPrompt)
	require.Equal(t, `{"to":"somebody"}`, string(the[Answered](t, p.respond(asked, saying("done"))).ReplyTo))
}

func TestOutputOfADelegatedTaskNamesTheDelegation(t *testing.T) {
	for name, end := range map[string]func(p *play, asked Enriched) effects{
		"answer": func(p *play, asked Enriched) effects { return p.respond(asked, saying("done")) },
		"error":  func(p *play, _ Enriched) effects { return p.wait(p.rules.ThinkTimeout) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, withChannels)
			p.send("reply-to", `{"to":"somebody"}`)
			asked := the[Enriched](t, p.send("message-input", channelMessage("look", `"request_id":"delegation/1"`, member(topics.MetaTask, task))))
			require.NotContains(t, string(asked.LatestInput), topics.MetaTask)
			called := the[Called](t, p.respond(asked, calling("t1")))
			require.EqualValues(t, 2, called.Depth)
			require.Nil(t, called.Origin)
			o := the[Answered](t, end(p, the[Enriched](t, p.result("t1", "x"))))
			require.Equal(t, string(topics.DelegationRoute(task)), string(o.ReplyTo))
			require.Equal(t, string(task), string(topics.DelegationOf(o.ReplyTo)))
		})
	}
}

func TestDepthOfAResultIsThatOfItsCalls(t *testing.T) {
	p := newPlay(t, withChannels)
	for _, depth := range []int64{0, 1, 5} {
		id := fmt.Sprint("t", depth)
		asked := the[Enriched](t, p.send("message-input", channelMessage("result", origin("ann"), member(topics.MetaResult, noteAt(depth)))))
		require.Contains(t, string(asked.LatestInput), topics.MetaResult, "the message stays marked in the history")
		called := the[Called](t, p.respond(asked, calling(id)))
		require.Equal(t, depth, called.Depth)
		p.respond(the[Enriched](t, p.result(id, "x")), saying("done"))
	}
}

func TestResultsOfDelegationsWaitUnderEveryPolicy(t *testing.T) {
	result := func(n int) string {
		return channelMessage(fmt.Sprint("result ", n), origin("ann"), member(topics.MetaResult, noteAt(1)))
	}
	t.Run("reject", func(t *testing.T) {
		p := newPlay(t, withChannels, func(r *Rules) { r.Policy = Reject })
		asked := the[Enriched](t, p.send("message-input", message("one")))
		require.Empty(t, p.send("message-input", result(1)))
		require.Empty(t, p.send("message-input", result(2)))
		require.Equal(t, topics.CodeBusy, the[Answered](t, p.send("message-input", message("two"))).Error.Code)
		for n := range 2 {
			asked = the[Enriched](t, p.respond(asked, saying("done")))
			require.Contains(t, string(asked.LatestInput), fmt.Sprint("result ", n+1))
		}
	})
	t.Run("queue", func(t *testing.T) {
		p := newPlay(t, withChannels, func(r *Rules) { r.QueueLimit = 2 })
		asked := the[Enriched](t, p.send("message-input", message("one")))
		var want []string
		for n := range 3 {
			require.Empty(t, p.send("message-input", result(n)))
			want = append(want, fmt.Sprint("result ", n))
			if n > 0 {
				require.Empty(t, p.send("message-input", message(fmt.Sprint("message ", n))), "results take no place of messages")
				want = append(want, fmt.Sprint("message ", n))
			}
		}
		require.Equal(t, topics.CodeQueueFull, the[Answered](t, p.send("message-input", message("more"))).Error.Code)
		require.Empty(t, p.send("message-input", result(3)))
		for _, text := range append(want, "result 3") {
			asked = the[Enriched](t, p.respond(asked, saying("done")))
			require.Contains(t, string(asked.LatestInput), text, "first in, first out")
		}
	})
	t.Run("supersede", func(t *testing.T) {
		p := newPlay(t, withChannels, func(r *Rules) { r.Policy, r.SupersedeAfter = Supersede, time.Minute })
		p.ask("one")
		require.Empty(t, p.send("message-input", result(1)))
		require.Empty(t, p.wait(2*time.Minute), "the step keeps its time")
		require.Empty(t, p.send("message-input", result(2)))
		out := p.send("message-input", message("two"))
		require.Equal(t, topics.CodeThinkTimeout, the[Answered](t, out).Error.Code, "a person's message does not wait so long")
		require.Contains(t, string(the[Enriched](t, out).LatestInput), "result 1")
	})
	t.Run("gates", func(t *testing.T) {
		p, _ := waitForApproval(t, withChannels, func(r *Rules) { r.SupersedeGates = true })
		require.Empty(t, p.send("message-input", result(1)))
		require.NotNil(t, p.state().Turn.Calls[0].Gate)
		require.Len(t, emitted[GateRequested](p.send("message-input", message("two"))), 1, "withdrawn for a person's message")
	})
}

// A row without room gives up messages before results, whose delegations took work.
func TestRowGivesUpMessagesBeforeResults(t *testing.T) {
	p := newPlay(t, withChannels, smallRow)
	asked := the[Enriched](t, p.send("message-input", message("one")))
	require.Empty(t, p.send("message-input", channelMessage(strings.Repeat("m", 8_000), origin("bob"))))
	require.Empty(t, p.send("message-input", channelMessage(strings.Repeat("r", 8_000), origin("ann"), member(topics.MetaResult, noteAt(1)))))
	out := p.respond(asked, callingAloudOf(52_000))
	o := the[Answered](t, out)
	require.Equal(t, topics.CodeQueueFull, o.Error.Code)
	require.Equal(t, toOrigin("bob"), string(o.ReplyTo))
	require.Len(t, p.state().Waiting, 1)
	require.True(t, p.state().Waiting[0].Result)
}

// callingAloudOf is a response of so many bytes that asks for a tool.
func callingAloudOf(size int) string {
	return `"last_input_response":[{"role":"assistant","content":"` + strings.Repeat("a", size) +
		`"}],"tool_uses":[{"tool_use_id":"t1","tool_id":"look","name":"look","input":{},"session_id":"s1"}],"end_turn":false`
}

// Callers of doors write routes, and would otherwise choose in which conversation an output appears.
func TestRoutesOfReplyToNameNoOriginAndNoDelegation(t *testing.T) {
	for _, delivery := range []bool{false, true} {
		p := newPlay(t, withChannels, func(r *Rules) { r.Delivery = delivery })
		p.send("reply-to", `{"callbackService":"pier",`+member("origin", originFor("eve"))+`,`+member("delegation", task)+`,"request_id":"r1"}`)
		asked := the[Enriched](t, p.send("message-input", requestMessage("one", "r1")))
		o := the[Answered](t, p.respond(asked, saying("done")))
		require.Equal(t, "pier", topics.ServiceOf(o.ReplyTo))
		require.Nil(t, topics.OriginOf(o.ReplyTo))
		require.Nil(t, topics.DelegationOf(o.ReplyTo))
	}
}

func TestRowsWithMessagesOfChannelsAreRefusedByOlderBuildsAndKeepUnknownFields(t *testing.T) {
	p := newPlay(t, withChannels)
	asked := the[Enriched](t, p.send("message-input", message("one")))
	require.Less(t, p.state().Version, uint32(rowChannels))
	require.Empty(t, p.send("message-input", channelMessage("two", origin("ann"))))
	require.EqualValues(t, rowChannels, p.state().Version, "for a message that waits")
	older := layout
	older.Version = rowGates
	require.ErrorIs(t, older.Decode(p.row, &State{}), ErrRowVersion)

	p.rewrite(func(s *State) {
		unknown := protowire.AppendString(protowire.AppendTag(nil, 900, protowire.BytesType), "from a newer build")
		s.Waiting[0].ProtoReflect().SetUnknown(unknown)
	})
	out := p.respond(asked, saying("first"))
	require.Contains(t, string(p.row), "from a newer build", "it moves with its message")
	require.Equal(t, toOrigin("ann"), string(the[Answered](t, p.respond(the[Enriched](t, out), saying("second"))).ReplyTo))
	require.Less(t, p.state().Version, uint32(rowChannels))
}

// What the turn stores is counted: records and rows stay below their limits with the largest members.
func TestLargestMembersFitIntoTheLimits(t *testing.T) {
	big := topics.EncodeOrigin(topics.Origin{
		Channel: "slack", Account: "main", Recipient: "C1", Adapter: topics.Raw(`{"a":"` + strings.Repeat("x", topics.MaxAdapterData-8) + `"}`),
	})
	prompt := strings.Repeat("p", maxPrompt)
	for _, size := range []int{1, 10_000, 25_000, 30_000, 35_000, 38_000, 60_000, 90_000, 110_000, 120_000} {
		p := newPlay(t, withChannels, smallRow)
		text := channelMessage(strings.Repeat("m", size), member(topics.MetaOrigin, big), ephemeral(prompt))
		requireWithin := func(es effects) effects {
			for _, e := range es {
				if out, ok := e.(Emit); ok {
					d, err := p.bind.encodeEmit(out)
					require.NoError(t, err)
					require.LessOrEqual(t, len(d.raw)+2*len(d.key)+len(d.id), p.rules.RecordLimit)
				}
			}
			return es
		}
		for _, asked := range emitted[Enriched](requireWithin(p.send("message-input", text))) {
			for _, next := range emitted[Answered](requireWithin(p.respond(asked, callingAloudOf(20_000)))) {
				require.Equal(t, string(topics.OriginRoute(big, nil)), string(next.ReplyTo))
			}
			requireWithin(p.result("t1", strings.Repeat("r", 10_000)))
		}
	}
}
