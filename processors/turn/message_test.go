package turn

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/topics"
)

func TestFirstMessageIsEnrichedWithAnEmptyHistory(t *testing.T) {
	p := newPlay(t)
	asked := p.ask("Which berth is free?")
	require.Nil(t, asked.History)
	require.Nil(t, asked.Cost)
	require.Equal(t, "s1", *asked.SessionID)
	require.Equal(t, "mira", *asked.UserID)
	require.Equal(t, "2026-09-21T14:13:20Z", *asked.Timestamp)
	require.Nil(t, asked.MemoirContext)
	require.JSONEq(t, message("Which berth is free?"), string(asked.LatestInput))
}

func TestHistoryEndsWithTheLastAnswer(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("one"), saying("first"))
	asked := p.ask("two")
	require.JSONEq(t, `[`+message("one")+`,{"role":"assistant","content":"first"}]`, string(asked.History))
	require.NotContains(t, string(asked.History), "two")
	require.InDelta(t, 0.5, *asked.Cost, 0)
}

func TestHistoryPassesThroughByteForByte(t *testing.T) {
	p := newPlay(t)
	p.ask("one")
	p.send("think-request-response", `{"previous_messages":[ {"role":"user","content":1.10, "z":1,"a":[1e5]},null ],`+
		`"last_input_message":null,"last_input_response":[null,{"role":"assistant","content":"\u00e4"}],"end_turn":true}`)
	require.Equal(t, `[{"role":"user","content":1.10, "z":1,"a":[1e5]},{"role":"assistant","content":"\u00e4"}]`,
		string(p.ask("two").History))
}

func TestUserIsTheMessagesElseTheLastResponses(t *testing.T) {
	for name, c := range map[string]struct {
		user   string
		before bool
		want   *string
	}{
		"the message's":                 {`"zoe"`, true, ptr("zoe")},
		"the response's for null":       {`null`, true, ptr("mira")},
		"the response's for blank":      {`"  "`, true, ptr("mira")},
		"nobody":                        {`null`, false, nil},
		"nobody where blank and no one": {`""`, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			if c.before {
				p.respond(p.ask("one"), saying("first"))
			}
			asked := the[enriched](t, p.send("message-input",
				`{"session_id":"s1","user_id":`+c.user+`,"role":"user","content":"x"}`))
			require.Equal(t, c.want, asked.UserID)
		})
	}
}

func TestTheSameRecordIsOneMessage(t *testing.T) {
	p := newPlay(t)
	asked := p.ask("one")
	first := p.past[0]
	require.Empty(t, p.repeat(first), "while the turn runs")
	p.respond(asked, saying("done"))
	require.Empty(t, p.repeat(first), "after the turn")
	require.Len(t, emitted[enriched](p.send("message-input", message("one"))), 1, "equal bytes at another offset")
}

func TestTheSameHeaderIDIsOneMessage(t *testing.T) {
	p := newPlay(t)
	require.Len(t, p.send("message-input", message("one"), header(topics.HeaderID, "chat-1")), 1)
	require.Empty(t, p.send("message-input", message("one"), header(topics.HeaderID, "chat-1")))
}

func TestTheSameRequestIDIsOneMessageForADay(t *testing.T) {
	p := newPlay(t)
	asked := the[enriched](t, p.send("message-input", requestMessage("one", "r1")))
	require.Equal(t, []string{reasonSameRequest}, p.send("message-input", requestMessage("one", "r1")).letters())
	p.respond(asked, saying("done"))
	require.Equal(t, []string{reasonSameRequest}, p.send("message-input", requestMessage("again", "r1")).letters())
	p.wait(24 * time.Hour)
	require.Len(t, emitted[enriched](p.send("message-input", requestMessage("later", "r1"))), 1)
}

func TestMessagesWaitForTheirTurnInOrder(t *testing.T) {
	p := newPlay(t)
	asked := p.ask("one")
	require.Empty(t, p.send("message-input", message("two")))
	require.Empty(t, p.send("message-input", message("three")))

	out := p.respond(asked, saying("first"))
	require.Equal(t, "first", the[answered](t, out).Content)
	asked = the[enriched](t, out)
	require.Contains(t, string(asked.LatestInput), "two")
	require.Contains(t, string(asked.History), "first", "a waiting message gets the history of when its turn starts")
	require.Equal(t, p.now.Add(p.rules.ThinkTimeout).UnixMilli(), p.state().Turn.DeadlineMs)

	require.Contains(t, string(the[enriched](t, p.respond(asked, saying("second"))).LatestInput), "three")
}

func TestMessageOverTheQueueLimitIsAnsweredImmediately(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.QueueLimit = 1 })
	p.ask("one")
	p.send("message-input", message("two"))
	o := the[answered](t, p.send("message-input", requestMessage("three", "r3")))
	require.Equal(t, topics.CodeQueueFull, o.Error.Code)
	require.Equal(t, "error", *o.Status)
	require.Equal(t, o.Error.Message, o.Content)
	require.Equal(t, "r3", *o.RequestID)
	require.Len(t, p.state().Waiting, 1)
}

func TestRejectPolicyAnswersBusy(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.Policy = Reject })
	asked := p.ask("one")
	require.Equal(t, topics.CodeBusy, the[answered](t, p.send("message-input", message("two"))).Error.Code)
	require.Equal(t, "done", the[answered](t, p.respond(asked, saying("done"))).Content)
}

func TestQueueIsBoundedInBytes(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.QueueLimit = 100 })
	p.ask("one")
	refused := 0
	for range 20 {
		for _, o := range emitted[answered](p.send("message-input", message(strings.Repeat("x", 100<<10)))) {
			require.Equal(t, topics.CodeQueueFull, o.Error.Code)
			refused++
		}
	}
	require.Equal(t, 20, refused+len(p.state().Waiting))
	require.Positive(t, refused)
}

func TestBadMessagesAreAnswered(t *testing.T) {
	for name, value := range map[string]string{
		"long role":       `{"session_id":"s1","role":"` + strings.Repeat("r", maxID+1) + `","content":"x"}`,
		"long user":       `{"session_id":"s1","role":"user","user_id":"` + strings.Repeat("u", maxID+1) + `"}`,
		"long timestamp":  `{"session_id":"s1","role":"user","timestamp":"` + strings.Repeat("t", maxID+1) + `"}`,
		"request object":  message("x", `{"request_id":{}}`),
		"request list":    message("x", `{"request_id":[1]}`),
		"request id long": message("x", `{"request_id":"`+strings.Repeat("r", maxID+1)+`"}`),
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			o := the[answered](t, p.send("message-input", value))
			require.Equal(t, topics.CodeInvalidMessage, o.Error.Code)
			require.Empty(t, p.repeat(p.past[0]))
			require.Nil(t, p.state().Turn)
		})
	}
}

func TestMessageWithoutARoleIsTheUsers(t *testing.T) {
	for _, value := range []string{
		`{"session_id":"s1","content":"x"}`, `{"session_id":"s1","role":null,"content":"x"}`, `{"session_id":"s1","role":" ","content":"x"}`,
	} {
		p := newPlay(t)
		e := the[enriched](t, p.send("message-input", value))
		require.JSONEq(t, `{"session_id":"s1","user_id":null,"role":"user","content":"x","timestamp":null,"metadata":null}`,
			string(e.LatestInput))
		p.respond(e, saying("hello"))
		require.Contains(t, string(p.ask("more").History), `"role":"user","content":"x"`)
	}
}

func TestAnyRoleButToolOpensATurn(t *testing.T) {
	for _, role := range []string{"user", "assistant", "system", "Tool"} {
		p := newPlay(t)
		require.Len(t, emitted[enriched](p.send("message-input", `{"session_id":"s1","role":"`+role+`"}`)), 1)
	}
}

func TestForeignToolMessageIsDeadLettered(t *testing.T) {
	p := newPlay(t)
	tool := `{"session_id":"s1","role":"tool","content":[]}`
	require.Equal(t, []string{reasonForeignTool}, p.send("message-input", tool).letters())
	require.Empty(t, p.send("message-input", tool, header(topics.HeaderID, "x")), "our own is ignored")
	require.Nil(t, p.row)
}

func TestTombstonesOfRecordsAreDeadLettered(t *testing.T) {
	for _, topic := range []string{"message-input", "think-dlq", "tool-use-result", "tool-use-dlq", "session-control"} {
		p := newPlay(t)
		require.Equal(t, []string{reasonTombstone}, p.tombstone(topic).letters(), topic)
		require.Nil(t, p.row)
	}
}

func TestMessageTooLargeForItsHistoryIsAnswered(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.RecordLimit, r.RowLimit = minRecord, minRecord-rowMargin })
	o := the[answered](t, p.send("message-input", requestMessage(strings.Repeat("x", minRecord), "r1")))
	require.Equal(t, topics.CodeTooLarge, o.Error.Code)
	require.Equal(t, "r1", *o.RequestID)
	require.Nil(t, p.state().Turn)
	require.Len(t, emitted[enriched](p.send("message-input", message("small"))), 1)
}

func ptr(s string) *string { return &s }

// Records that arrive while a message waits can displace the memory of its own record. Its turn still tells a repeat.
func TestMessageThatIsReadAgainHasOneTurnThoughItsRecordIsForgotten(t *testing.T) {
	crowd := func(p *play) {
		for range 5 {
			p.send("reply-to", `{"to":"x"}`)
		}
	}
	p := newPlay(t, func(r *rules) { r.RememberCount = 4 })
	first := p.recordOf("message-input", message("one"))
	asked := the[enriched](t, p.apply(first))
	second := p.recordOf("message-input", message("two"))
	require.Empty(t, p.apply(second))
	crowd(p)
	require.False(t, remembers(p.state().Causes, digests.Of(ofCause, "message-input", first.source().Cause), p.now, time.Hour))
	require.Empty(t, p.apply(first), "its turn is open")
	require.Empty(t, p.apply(second), "it waits")
	require.Len(t, p.state().Waiting, 1)
	p.respond(asked, saying("first"))
	require.Empty(t, p.apply(first), "its turn has ended")
}
