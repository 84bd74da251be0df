package turn

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

func TestOutputOfADelegatedTaskNamesTheDelegation(t *testing.T) {
	for name, end := range map[string]func(p *play, asked enriched) effects{
		"answer": func(p *play, asked enriched) effects { return p.respond(asked, saying("done")) },
		"error":  func(p *play, _ enriched) effects { return p.wait(p.rules.ThinkTimeout) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, withChannels)
			p.send("reply-to", `{"to":"somebody"}`)
			asked := the[enriched](t, p.send("message-input", channelMessage("look", `"request_id":"delegation/1"`, member(topics.MetaTask, task))))
			require.NotContains(t, string(asked.LatestInput), topics.MetaTask)
			called := the[called](t, p.respond(asked, calling("t1")))
			require.EqualValues(t, 2, called.Depth)
			require.Nil(t, called.Origin)
			o := the[answered](t, end(p, the[enriched](t, p.result("t1", "x"))))
			require.Equal(t, string(topics.DelegationRoute(task)), string(o.ReplyTo))
			require.Equal(t, string(task), string(topics.DelegationOf(o.ReplyTo)))
		})
	}
}

func TestDepthOfAResultIsThatOfItsCalls(t *testing.T) {
	p := newPlay(t, withChannels)
	for _, depth := range []int64{0, 1, 5} {
		id := fmt.Sprint("t", depth)
		asked := the[enriched](t, p.send("message-input", channelMessage("result", origin("ann"), member(topics.MetaResult, noteAt(depth)))))
		require.Contains(t, string(asked.LatestInput), topics.MetaResult, "the message stays marked in the history")
		called := the[called](t, p.respond(asked, calling(id)))
		require.Equal(t, depth, called.Depth)
		p.respond(the[enriched](t, p.result(id, "x")), saying("done"))
	}
}

func TestResultsOfDelegationsWaitUnderEveryPolicy(t *testing.T) {
	result := func(n int) string {
		return channelMessage(fmt.Sprint("result ", n), origin("ann"), member(topics.MetaResult, noteAt(1)))
	}
	t.Run("reject", func(t *testing.T) {
		p := newPlay(t, withChannels, func(r *rules) { r.Policy = Reject })
		asked := the[enriched](t, p.send("message-input", message("one")))
		require.Empty(t, p.send("message-input", result(1)))
		require.Empty(t, p.send("message-input", result(2)))
		require.Equal(t, topics.CodeBusy, the[answered](t, p.send("message-input", message("two"))).Error.Code)
		for n := range 2 {
			asked = the[enriched](t, p.respond(asked, saying("done")))
			require.Contains(t, string(asked.LatestInput), fmt.Sprint("result ", n+1))
		}
	})
	t.Run("queue", func(t *testing.T) {
		p := newPlay(t, withChannels, func(r *rules) { r.QueueLimit = 2 })
		asked := the[enriched](t, p.send("message-input", message("one")))
		var want []string
		for n := range 3 {
			require.Empty(t, p.send("message-input", result(n)))
			want = append(want, fmt.Sprint("result ", n))
			if n > 0 {
				require.Empty(t, p.send("message-input", message(fmt.Sprint("message ", n))), "results take no place of messages")
				want = append(want, fmt.Sprint("message ", n))
			}
		}
		require.Equal(t, topics.CodeQueueFull, the[answered](t, p.send("message-input", message("more"))).Error.Code)
		require.Empty(t, p.send("message-input", result(3)))
		for _, text := range append(want, "result 3") {
			asked = the[enriched](t, p.respond(asked, saying("done")))
			require.Contains(t, string(asked.LatestInput), text, "first in, first out")
		}
	})
	t.Run("supersede", func(t *testing.T) {
		p := newPlay(t, withChannels, func(r *rules) { r.Policy, r.SupersedeAfter = Supersede, time.Minute })
		p.ask("one")
		require.Empty(t, p.send("message-input", result(1)))
		require.Empty(t, p.wait(2*time.Minute), "the step keeps its time")
		require.Empty(t, p.send("message-input", result(2)))
		require.Empty(t, p.send("message-input", message("two")))
		out := p.wait(0)
		require.Equal(t, topics.CodeThinkTimeout, the[answered](t, out).Error.Code, "a person's message does not wait so long")
		require.Contains(t, string(the[enriched](t, out).LatestInput), "result 1")
	})
	t.Run("gates", func(t *testing.T) {
		p, _ := waitForApproval(t, withChannels, func(r *rules) { r.SupersedeGates = true })
		require.Empty(t, p.send("message-input", result(1)))
		require.NotNil(t, p.state().Turn.Calls[0].Gate)
		require.Len(t, emitted[gateRequested](p.send("message-input", message("two"))), 1, "withdrawn for a person's message")
	})
}

// A row without room gives up messages before results, whose delegations took work.
func TestRowGivesUpMessagesBeforeResults(t *testing.T) {
	p := newPlay(t, withChannels, smallRow)
	asked := the[enriched](t, p.send("message-input", message("one")))
	require.Empty(t, p.send("message-input", channelMessage(strings.Repeat("m", 8_000), origin("bob"))))
	require.Empty(t, p.send("message-input", channelMessage(strings.Repeat("r", 8_000), origin("ann"), member(topics.MetaResult, noteAt(1)))))
	out := p.respond(asked, callingAloudOf(52_000))
	o := the[answered](t, out)
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
		p := newPlay(t, withChannels, func(r *rules) { r.Delivery = delivery })
		p.send("reply-to", `{"callbackService":"pier",`+member("origin", originFor("eve"))+`,`+member("delegation", task)+`,"request_id":"r1"}`)
		asked := the[enriched](t, p.send("message-input", requestMessage("one", "r1")))
		o := the[answered](t, p.respond(asked, saying("done")))
		require.Equal(t, "pier", topics.ServiceOf(o.ReplyTo))
		require.Nil(t, topics.OriginOf(o.ReplyTo))
		require.Nil(t, topics.DelegationOf(o.ReplyTo))
	}
}

func TestRowsWithMessagesOfChannelsAreRefusedByOlderBuildsAndKeepUnknownFields(t *testing.T) {
	p := newPlay(t, withChannels)
	asked := the[enriched](t, p.send("message-input", message("one")))
	require.Less(t, p.state().Version, uint32(rowChannels))
	require.Empty(t, p.send("message-input", channelMessage("two", origin("ann"))))
	require.EqualValues(t, rowChannels, p.state().Version, "for a message that waits")
	older := turnrow.Table
	older.Version = rowGates
	require.ErrorIs(t, func() error { _, err := older.Unmarshal(p.row); return err }(), rows.ErrVersion)

	p.rewrite(func(s *turnrow.State) {
		unknown := protowire.AppendString(protowire.AppendTag(nil, 900, protowire.BytesType), "from a newer build")
		s.Waiting[0].ProtoReflect().SetUnknown(unknown)
	})
	out := p.respond(asked, saying("first"))
	require.Contains(t, string(p.row), "from a newer build", "it moves with its message")
	require.Equal(t, toOrigin("ann"), string(the[answered](t, p.respond(the[enriched](t, out), saying("second"))).ReplyTo))
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
				if out, ok := e.(emit); ok {
					d, err := p.bind.encodeEmit(out)
					require.NoError(t, err)
					require.LessOrEqual(t, len(d.raw)+2*len(d.key)+len(d.id), p.rules.RecordLimit)
				}
			}
			return es
		}
		for _, asked := range emitted[enriched](requireWithin(p.send("message-input", text))) {
			for _, next := range emitted[answered](requireWithin(p.respond(asked, callingAloudOf(20_000)))) {
				require.Equal(t, string(topics.OriginRoute(big, nil)), string(next.ReplyTo))
			}
			requireWithin(p.result("t1", strings.Repeat("r", 10_000)))
		}
	}
}
