package turn

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/topics"
)

func TestEveryItemBecomesACall(t *testing.T) {
	p := newPlay(t)
	out := p.respond(p.ask("hi"), calling("t1", "t2"))
	calls := emitted[called](out)
	require.Len(t, calls, 2)
	for i, id := range []string{"t1", "t2"} {
		require.Equal(t, called{
			ToolUseID: &id, ToolID: ptr("look"), Name: ptr("look"), Input: topics.Raw(`{"at":1}`),
			SessionID: ptr("s1"), TotalTools: 2,
		}, calls[i])
	}
	turn := p.state().Turn
	require.Equal(t, []string{turn.Message.TurnId + "/1/tool-use/0", turn.Message.TurnId + "/1/tool-use/1"}, out.ids())
	require.Equal(t, p.now.Add(p.rules.ToolTimeout).UnixMilli(), turn.DeadlineMs)
}

func TestEndTurnWithToolsDoesNotEndTheTurn(t *testing.T) {
	p := newPlay(t)
	out := p.respond(p.ask("hi"), strings.Replace(calling("t1"), `"end_turn":false`, `"end_turn":true`, 1))
	require.Empty(t, emitted[answered](out))
	require.Len(t, emitted[called](out), 1)
}

func TestLastResultCompletesTheStep(t *testing.T) {
	p := newPlay(t)
	asked := p.ask("hi")
	p.respond(asked, calling("t1", "t2"))
	require.Empty(t, p.result("t2", "second"), "one is still open")
	deadline := p.state().Turn.DeadlineMs
	p.now = p.now.Add(time.Second)
	out := p.result("t1", "first")

	done := the[completed](t, out)
	require.Equal(t, "s1", *done.SessionID)
	require.Equal(t, "mira", *done.UserID)
	require.Equal(t, int64(2), done.ExpectedCount)
	require.Equal(t, []topics.ExpectedTool{
		{ToolUseID: ptr("t1"), Name: ptr("look")}, {ToolUseID: ptr("t2"), Name: ptr("look")},
	}, done.Expected)
	require.Equal(t, deadline, done.DeadlineMS)
	require.True(t, done.Emitted)
	require.False(t, done.Complete)
	require.Equal(t, "t1", *done.Results[0].ToolUseID, "in item order")
	require.Equal(t, int64(5), done.Results[0].LatencyMS)

	m := the[toolMessage](t, out)
	require.Equal(t, "tool", *m.Role)
	require.Equal(t, "s1", *m.SessionID)
	require.Equal(t, "mira", *m.UserID)
	require.Equal(t, `[{"tool_use_id":"t1","name":"look","result":{"said":"first"},"status":"success"},`+
		`{"tool_use_id":"t2","name":"look","result":{"said":"second"},"status":"success"}]`, string(m.Content))
	require.Equal(t, `{"tool_results":[`+string(topics.EncodeToolResult(done.Results[0]))+`,`+
		string(topics.EncodeToolResult(done.Results[1]))+`],"tool_count":2,"source":"tool-execution"}`, string(m.Metadata))

	next := the[enriched](t, out)
	require.Equal(t, string(topics.EncodeMessage(topics.Message(m))), string(next.LatestInput))
	require.JSONEq(t, `[`+message("hi")+`,{"role":"assistant","content":[]}]`, string(next.History))
	require.InDelta(t, 0.5, *next.Cost, 0)
	require.Equal(t, uint32(2), p.state().Turn.Step)
	turn := p.state().Turn.Message.TurnId
	require.Equal(t, []string{turn + "/1/all-complete/0", turn + "/1/message/0", turn + "/2/enriched/0"}, out.ids())
}

func TestUnusableItemsGetErrorResultsImmediately(t *testing.T) {
	p := newPlay(t)
	out := p.respond(p.ask("hi"), `"tool_uses":[{"tool_use_id":null,"name":"look"},{"tool_use_id":"t1","name":" "},`+
		`null,{"tool_use_id":"t2","name":"look"},{"tool_use_id":"t2","name":"other"}],"end_turn":false`)
	require.Len(t, emitted[called](out), 1)
	refused := emitted[refused](out)
	require.Len(t, refused, 4)
	for _, r := range refused {
		require.Equal(t, int64(5), r.TotalTools)
	}
	out = p.result("t2", "good")
	m := the[toolMessage](t, out)
	entry := func(id, name, text string) string {
		return fmt.Sprintf(`{"tool_use_id":%s,"name":%s,"result":{"error":"%s","reason":"invalid_tool_call"},`+
			`"status":"error"}`, id, name, text)
	}
	require.Equal(t, `[`+entry(`null`, `"look"`, "the tool call has no tool_use_id")+`,`+
		entry(`"t1"`, `" "`, "the tool call has no name")+`,`+
		entry(`null`, `null`, "the tool call has no tool_use_id")+`,`+
		`{"tool_use_id":"t2","name":"look","result":{"said":"good"},"status":"success"},`+
		entry(`"t2"`, `"other"`, "the tool_use_id is that of another call of the same response")+`]`, string(m.Content))
	require.Equal(t, int64(5), the[completed](t, out).ExpectedCount)
}

// The model finds the answer to its n-th item in the n-th place, so a null must not move the items behind it.
func TestItemsKeepTheirOrderAmongNulls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var items, want []string
		for i, null := range rapid.SliceOfN(rapid.Bool(), 1, 8).Draw(t, "nulls") {
			if null {
				items, want = append(items, `null`), append(want, "")
				continue
			}
			id := fmt.Sprint("t", i)
			items, want = append(items, fmt.Sprintf(`{"tool_use_id":%q,"name":"look"}`, id)), append(want, id)
		}
		p := newPlay(t)
		out := p.respond(p.ask("hi"), `"tool_uses":[`+strings.Join(items, ",")+`],"end_turn":false`)
		calls := emitted[called](out)
		for _, c := range calls {
			out = p.result(*c.ToolUseID, "x")
		}
		done := the[completed](t, out)
		for i, e := range done.Expected {
			require.Equal(t, want[i], textOrNone(e.ToolUseID))
			require.Equal(t, want[i], textOrNone(done.Results[i].ToolUseID))
		}
		require.Len(t, done.Expected, len(want))
	})
}

func textOrNone(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func TestStepWithoutUsableItemsCompletesImmediately(t *testing.T) {
	for name, items := range map[string]string{"null id": `{"tool_use_id":null,"name":"x"}`, "null element": `null`} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			out := p.respond(p.ask("hi"), `"tool_uses":[`+items+`],"end_turn":true`)
			require.Len(t, emitted[refused](out), 1)
			require.Len(t, emitted[completed](out), 1)
			require.Len(t, emitted[toolMessage](out), 1)
			require.Len(t, emitted[enriched](out), 1)
			require.Equal(t, uint32(2), p.state().Turn.Step)
		})
	}
}

func TestTooManyCallsEndTheTurn(t *testing.T) {
	p := newPlay(t)
	out := p.respond(p.ask("hi"), `"tool_uses":[`+strings.Repeat("null,", maxCalls)+`null]`)
	require.Equal(t, topics.CodeTooLarge, the[answered](t, out).Error.Code)
	require.Len(t, out, 1)
}

func TestToolTimeoutGivesOpenCallsErrorResults(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("hi"), calling("t1", "t2"))
	p.result("t1", "came")
	require.Empty(t, p.wait(p.rules.ToolTimeout-time.Millisecond))
	out := p.wait(time.Millisecond)
	done := the[completed](t, out)
	require.Contains(t, string(done.Results[0].Result), "came")
	require.Equal(t, topics.ToolUseResult{
		SessionID: ptr("s1"), ToolUseID: ptr("t2"), Name: ptr("look"),
		Result:    topics.Raw(`{"error":"async tool did not respond within 300000ms","reason":"timeout"}`),
		LatencyMS: 300000, Status: ptr("error"), TotalTools: 2, Timestamp: ptr(topics.Timestamp(p.now)),
	}, done.Results[1])
	require.Len(t, emitted[enriched](out), 1)
	require.Equal(t, []string{reasonCallEnded}, p.result("t2", "late").letters())
}

// At its deadline, a call is ended by the turn's own timer or by the worker's result, whichever is read first.
func TestCallThatEndsAtItsDeadlineHasOneReason(t *testing.T) {
	late := `{"tool_use_id":"t1","status":"error","result":{"error":"too late","reason":"timeout"}}`
	for name, end := range map[string]func(p *play) effects{
		"timer first": func(p *play) effects {
			out := p.wait(p.rules.ToolTimeout)
			require.Equal(t, []string{reasonCallEnded}, p.send("tool-use-result", late).letters())
			return out
		},
		"result first": func(p *play) effects {
			out := p.send("tool-use-result", late)
			require.Empty(t, emitted[completed](p.wait(p.rules.ToolTimeout)))
			return out
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			p.respond(p.ask("hi"), calling("t1"))
			r := the[completed](t, end(p)).Results[0]
			require.Equal(t, "error", *r.Status)
			reason, _ := topics.Lookup(r.Result, "reason")
			require.Equal(t, `"timeout"`, string(reason))
		})
	}
}

func TestToolErrorEndsItsCallImmediately(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("hi"), calling("t1"))
	item := `{"tool_use_id":"t1","name":"look","total_tools":1}`
	require.Empty(t, p.send("tool-use-dlq", item, header(topics.HeaderID, "ours")), "our own are answered already")
	require.Empty(t, p.send("tool-use-dlq", `{"tool_use_id":"t9","name":"look"}`), "silently")
	require.Empty(t, p.send("tool-use-dlq", `{"tool_use_id":null}`))
	out := p.send("tool-use-dlq", item, header(topics.HeaderErrorReason, "division by zero"))
	require.Equal(t, `[{"tool_use_id":"t1","name":"look","result":{"error":"division by zero","reason":"tool_failed"},`+
		`"status":"error"}]`, string(the[toolMessage](t, out).Content))
}

func TestSecondResultOfACallChangesNothing(t *testing.T) {
	p := newPlay(t)
	asked := p.ask("hi")
	p.respond(asked, calling("t1", "t2"))
	p.result("t1", "first")
	require.Equal(t, []string{reasonSameResult}, p.result("t1", "first").letters(), "identical bytes at another offset")
	require.Empty(t, p.repeat(p.past[2]), "the same record")
	require.Equal(t, []string{reasonCallEnded}, p.result("t1", "other").letters())
	require.Empty(t, p.send("tool-use-dlq", `{"tool_use_id":"t1","name":"look"}`), "nor does an error")
	out := p.result("t2", "x")
	require.Contains(t, string(the[toolMessage](t, out).Content), "first")
	require.NotContains(t, string(the[toolMessage](t, out).Content), "other")
}

func TestLateAndForeignResultsAreDeadLettered(t *testing.T) {
	p := newPlay(t)
	require.Equal(t, []string{reasonNoCall}, p.result("t1", "no turn").letters())
	require.Nil(t, p.row)
	asked := p.ask("hi")
	p.respond(asked, calling("t1"))
	require.Equal(t, []string{reasonNoCall}, p.result("t9", "foreign").letters(), "while tools run")
	asked = the[enriched](t, p.result("t1", "x"))
	require.Equal(t, []string{reasonCallEnded}, p.result("t1", "late").letters(), "while the model thinks")
	p.respond(asked, saying("done"))
	require.Equal(t, []string{reasonCallEnded}, p.result("t1", "later").letters(), "after the turn")
	p.wait(24 * time.Hour)
	require.Equal(t, []string{reasonNoCall}, p.result("t1", "much later").letters(), "forgotten, and still nobody's")
}

func TestResultWithoutAnIDIsDeadLettered(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("hi"), calling("t1"))
	for _, id := range []string{`null`, `" "`, `"` + strings.Repeat("i", maxID+1) + `"`} {
		out := p.send("tool-use-result", `{"tool_use_id":`+id+`,"result":{}}`)
		require.Equal(t, []string{reasonNoToolUseID}, out.letters())
	}
}

func TestTotalToolsOfAResultIsNotTrusted(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("hi"), calling("t1", "t2", "t3"))
	require.Empty(t, p.send("tool-use-result", `{"tool_use_id":"t1","result":{},"total_tools":1}`))
}

func TestALaterTurnMayUseAnIDAgain(t *testing.T) {
	p := newPlay(t)
	asked := p.ask("one")
	p.respond(asked, calling("t1"))
	asked = the[enriched](t, p.result("t1", "first"))
	p.respond(asked, saying("done"))

	asked = p.ask("two")
	require.Len(t, emitted[called](p.respond(asked, calling("t1"))), 1)
	require.Equal(t, []string{reasonSameResult}, p.result("t1", "first").letters(), "identical bytes are the old result")
	require.Contains(t, string(the[toolMessage](t, p.result("t1", "second")).Content), "second")
}

func TestRepeatOfAHeldResultIsRecognized(t *testing.T) {
	p := newPlay(t)
	asked := p.ask("one")
	p.result("t1", "early")
	asked = the[enriched](t, p.respond(asked, calling("t1")))
	p.respond(asked, saying("done"))
	p.respond(p.ask("two"), calling("t1"))
	require.Equal(t, []string{reasonSameResult}, p.result("t1", "early").letters())
}

func TestEarlyResultsAreHeldForTheirCall(t *testing.T) {
	p := newPlay(t)
	asked := p.ask("hi")
	require.Empty(t, p.result("t1", "early"))
	require.Equal(t, []string{reasonHeldAlready}, p.result("t1", "other").letters(), "the first stays")
	require.Empty(t, p.result("t9", "nobody's"))
	require.Empty(t, p.send("tool-use-dlq", `{"tool_use_id":"t2","name":"look"}`,
		header(topics.HeaderErrorReason, "broken")))
	require.Empty(t, p.send("tool-use-dlq", `{"tool_use_id":"t8","name":"look"}`))
	out := p.respond(asked, calling("t1", "t2"))
	require.Len(t, emitted[called](out), 2, "the calls are made all the same")
	content := string(the[toolMessage](t, out).Content)
	require.Contains(t, content, "early")
	require.Contains(t, content, "broken")
	require.Len(t, p.state().Turn.Held, 2)

	out = p.respond(the[enriched](t, out), saying("done"))
	require.Equal(t, []string{reasonUnclaimed}, out.letters(), "only the result; the error goes in silence")
	held := out[1].(deadLetter).Held
	require.Equal(t, "t9", held.ToolUseId)
	require.Equal(t, toolResult("t9", "nobody's"), string(held.Value))
	require.Equal(t, "quay-tool-use-result", held.Topic)
	require.Equal(t, []string{reasonCallEnded}, p.result("t1", "late").letters())
}

func TestAnEarlyResultOfAnEarlierTurnIsLate(t *testing.T) {
	p := newPlay(t)
	asked := p.ask("one")
	p.respond(asked, calling("t1"))
	asked = the[enriched](t, p.wait(p.rules.ToolTimeout))
	p.respond(asked, saying("done"))
	p.ask("two")
	require.Equal(t, []string{reasonCallEnded}, p.result("t1", "very late").letters())
}

func TestNullResultIsAnEmptyObject(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("hi"), calling("t1"))
	out := p.send("tool-use-result", `{"tool_use_id":"t1","result":null,"status":null}`)
	require.Equal(t, `[{"tool_use_id":"t1","name":"look","result":{},"status":null}]`,
		string(the[toolMessage](t, out).Content))
}
