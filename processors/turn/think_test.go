package turn

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

func TestAnswerEndsTheTurn(t *testing.T) {
	p := newPlay(t)
	out := p.respond(the[enriched](t, p.send("message-input", requestMessage("hi", "r1"))), saying("hello"))
	o := the[answered](t, out)
	require.Equal(t, topics.Output{
		SessionID: ptr("s1"), UserID: ptr("mira"), Content: "hello", InputTokens: 7, OutputTokens: 3,
		Cost: o.Cost, SourceAgent: agent, Timestamp: "2026-09-21T14:13:20Z", RequestID: ptr("r1"),
	}, topics.Output(o))
	require.InDelta(t, 0.5, *o.Cost, 0)
	require.Nil(t, p.state().Turn)
}

func TestAnswerContent(t *testing.T) {
	const empty = "the model's reply is empty"
	for name, c := range map[string]struct{ messages, want string }{
		"one":                 {`[{"role":"assistant","content":"a"}]`, "a"},
		"several, by a blank": {`[{"role":"assistant","content":"a"},{"role":"assistant","content":"b"}]`, "a\n\nb"},
		"not the user's":      {`[{"role":"user","content":"u"},{"role":"assistant","content":"a"},{"role":"tool"}]`, "a"},
		"null list":           {`null`, empty},
		"empty list":          {`[]`, empty},
		"no assistant":        {`[{"role":"user","content":"u"}]`, empty},
		"blank ones left out": {`[{"role":"assistant","content":" "},{"role":"assistant","content":"a"}]`, "a"},
		"untrimmed":           {`[{"role":"assistant","content":" a "}]`, " a "},
		"null element":        {`[null,{"role":"assistant","content":"a"}]`, "a"},
		"null content":        {`[{"role":"assistant","content":null}]`, empty},
		"number":              {`[{"role":"assistant","content":12}]`, "12"},
		"text blocks":         {`[{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use"}]}]`, "a"},
		"role is exact":       {`[{"role":"Assistant","content":"a"}]`, empty},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			out := p.respond(p.ask("hi"), `"last_input_response":`+c.messages+`,"end_turn":true`)
			answered := the[answered](t, out)
			require.Equal(t, c.want, answered.Content)
			if c.want != empty {
				require.Nil(t, answered.Error)
				return
			}
			require.Equal(t, &topics.OutputError{Code: topics.CodeEmptyResponse, Message: empty}, answered.Error)
			require.Equal(t, "error", *answered.Status)
			require.Empty(t, p.ask("again").History, "the turn has no answer")
		})
	}
}

func TestSourceAgentIsTheFirstNamed(t *testing.T) {
	for name, c := range map[string]struct{ messages, want string }{
		"default":  {`[{"role":"assistant"}]`, agent},
		"named":    {`[{"role":"assistant","metadata":{"agent":"pilot"}}]`, "pilot"},
		"any role": {`[{"role":"user","metadata":{"agent":"a"}},{"role":"assistant","metadata":{"agent":"b"}}]`, "a"},
		"null":     {`[{"role":"assistant","metadata":{"agent":null}}]`, "null"},
		"number":   {`[{"role":"assistant","metadata":{"agent":7}}]`, "7"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			out := p.respond(p.ask("hi"), `"last_input_response":`+c.messages+`,"end_turn":true`)
			require.Equal(t, c.want, the[answered](t, out).SourceAgent)
		})
	}
}

func TestLegacyAndCamelCaseResponsesAnswer(t *testing.T) {
	for name, value := range map[string]string{
		"legacy": `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}],"cost":0.5,` +
			`"input_tokens":7,"output_tokens":3,"end_turn":true}`,
		"camelCase": `{"sessionId":"s1","userId":"mira","cost":0.5,"inputTokens":7,"outputTokens":3,"previousMessages":[],` +
			`"lastInputMessage":{"role":"user","content":"hi"},"lastInputResponse":[{"role":"assistant","content":"hello"}],` +
			`"toolUses":null,"endTurn":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			p.ask("hi")
			o := the[answered](t, p.send("think-request-response", value))
			require.Equal(t, "hello", o.Content)
			require.Equal(t, int64(7), o.InputTokens)
			require.Equal(t, int64(3), o.OutputTokens)
			require.InDelta(t, 0.5, *o.Cost, 0)
		})
	}
}

func TestNullCostFlowsThrough(t *testing.T) {
	p := newPlay(t)
	p.ask("hi")
	require.Nil(t, the[answered](t, p.send("think-request-response", `{"total_session_cost":null,"previous_messages":[],"end_turn":true}`)).Cost)
	require.Nil(t, p.ask("again").Cost)
}

func TestResponseWithoutToolsAndEndIsNotAnAnswer(t *testing.T) {
	p := newPlay(t)
	asked := p.ask("hi")
	require.Empty(t, p.respond(asked, `"end_turn":false,"tool_uses":[]`))
	require.NotNil(t, p.state().Turn)
	require.Equal(t, "done", the[answered](t, p.respond(asked, saying("done"))).Content, "the step waits on")
}

func TestStepWithoutAnAnswerEndsAtItsDeadline(t *testing.T) {
	p := newPlay(t)
	asked := p.ask("hi")
	require.Empty(t, p.respond(asked, `"end_turn":false`))
	require.Empty(t, p.wait(p.rules.ThinkTimeout-time.Millisecond))
	require.Equal(t, topics.CodeThinkTimeout, the[answered](t, p.wait(time.Millisecond)).Error.Code)
}

func TestResponseCountsOnlyForAStepThatWaits(t *testing.T) {
	p := newPlay(t)
	require.Equal(t, []string{reasonNoStep}, p.send("think-request-response", `{"cost":1,"end_turn":true}`).letters(), "names none")
	asked := p.ask("hi")
	answer := response(asked, saying("done"))
	p.send("think-request-response", answer)
	require.Equal(t, []string{reasonSameResponse}, p.send("think-request-response", answer).letters(), "after the turn")
	require.Empty(t, p.repeat(p.past[len(p.past)-2]), "the same record again")
	require.Equal(t, []string{reasonNoStep}, p.respond(asked, saying("another")).letters())

	next := p.ask("more")
	require.Equal(t, []string{reasonSameResponse}, p.send("think-request-response", answer).letters(), "in the next turn")
	require.Equal(t, []string{reasonOtherStep}, p.respond(asked, saying("another")).letters(), "names a closed step")
	require.Equal(t, "good", the[answered](t, p.respond(next, saying("good"))).Content)
}

func TestResponseWhileToolsRunIsDeadLettered(t *testing.T) {
	p := newPlay(t)
	asked := p.ask("hi")
	p.respond(asked, calling("t1"))
	require.Equal(t, []string{reasonNoStep}, p.respond(asked, saying("no")).letters())
	require.Len(t, emitted[enriched](p.result("t1", "x")), 1)
}

func TestEchoSelectsTheStepThatAResponseAnswers(t *testing.T) {
	// The session asked "one" (answered), now it asks "two".
	one, two := message("one"), message("two")
	rewritten := `{ "timestamp":"2026-06-20T08:15:03.120Z","content":"\u006fne","role":"user" }`
	said := `,{"role":"assistant","content":"x"}],"end_turn":true}`
	echo := func(previous, last string) string {
		return fmt.Sprintf(`{"previous_messages":%s,"last_input_message":%s,"end_turn":true}`, previous, last)
	}
	for name, c := range map[string]struct {
		value string
		want  string // reason; empty: it counts
	}{
		"the open step":              {echo(`[]`, two), ""},
		"a closed step":              {echo(`[]`, one), reasonOtherStep},
		"the closed step, rewritten": {echo(`[]`, rewritten), reasonOtherStep},
		"missing":                    {echo(`[]`, `null`), ""},
		"shortened":                  {echo(`[]`, `{"role":"user","content":"o"}`), ""},
		"legacy, the open step":      {`{"messages":[` + two + said, ""},
		"legacy, a closed step":      {`{"messages":[` + one + said, reasonOtherStep},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			p.respond(p.ask("one"), saying("first"))
			p.ask("two")
			out := p.send("think-request-response", c.value)
			if c.want == "" {
				require.Len(t, emitted[answered](out), 1)
				return
			}
			require.Equal(t, []string{c.want}, out.letters())
			require.NotNil(t, p.state().Turn)
		})
	}
}

func TestAMissingEchoNamesTheOpenStep(t *testing.T) {
	p := newPlay(t)
	p.ask("one")
	require.Len(t, emitted[answered](p.send("think-request-response",
		`{"previous_messages":[{},{}],"last_input_message":null,"end_turn":true}`)), 1)
}

func TestRepeatedQuestionIsDistinguishedByItsHistory(t *testing.T) {
	for name, c := range map[string]struct {
		previous, more string
		counts         bool
	}{
		"the open step's history":   {`[{},{}]`, `"compaction":false`, true},
		"the closed step's history": {`[]`, `"compaction":false`, false},
		"compacted":                 {`[]`, `"compaction":true`, true},
		"shortened":                 {`[{}]`, `"compaction":false`, true},
		"missing":                   {`null`, `"compaction":false`, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			p.respond(p.ask("again"), saying("first"))
			p.ask("again")
			out := p.send("think-request-response", fmt.Sprintf(
				`{"previous_messages":%s,"last_input_message":%s,"end_turn":true,%s}`, c.previous, message("again"), c.more))
			require.Equal(t, c.counts, len(emitted[answered](out)) == 1, out.letters())
		})
	}
}

func TestThinkDeadlineEndsTheTurn(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("one"), saying("first"))
	asked := p.ask("two")
	p.send("message-input", message("three"))
	out := p.wait(p.rules.ThinkTimeout)
	o := the[answered](t, out)
	require.Equal(t, topics.CodeThinkTimeout, o.Error.Code)
	require.Equal(t, "error", *o.Status)
	require.Equal(t, agent, o.SourceAgent)
	require.Zero(t, o.InputTokens)
	require.InDelta(t, 0.5, *o.Cost, 0)
	next := the[enriched](t, out)
	require.Contains(t, string(next.LatestInput), "three")
	require.NotContains(t, string(next.History), "two", "an error leaves the history as it was")
	require.Equal(t, []string{reasonOtherStep}, p.respond(asked, saying("late")).letters())
}

func TestErrorAfterToolsKeepsTheCostAndNotTheHistory(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("one"), calling("t1"))
	p.result("t1", "x")
	out := p.wait(p.rules.ThinkTimeout)
	require.InDelta(t, 0.5, *the[answered](t, out).Cost, 0)
	asked := p.ask("two")
	require.Nil(t, asked.History)
	require.InDelta(t, 0.5, *asked.Cost, 0)
}

func TestThinkFailureEndsTheTurn(t *testing.T) {
	for name, send := range map[string]func(p *play, asked enriched) effects{
		"original bytes and headers": func(p *play, asked enriched) effects {
			return p.send("think-dlq", `{"session_id":"s1","latest_input":`+string(asked.LatestInput)+`}`,
				header(topics.HeaderErrorReason, "upstream 529"))
		},
		"original value and error": func(p *play, asked enriched) effects {
			return p.send("think-dlq", fmt.Sprintf(`{"originalValue":%q,"error":"upstream 529"}`,
				`{"latest_input":`+string(asked.LatestInput)+`}`))
		},
		"no original": func(p *play, asked enriched) effects {
			return p.send("think-dlq", `{"originalValue":null,"error":"upstream 529"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			o := the[answered](t, send(p, p.ask("hi")))
			require.Equal(t, topics.CodeThinkFailed, o.Error.Code)
			require.Contains(t, o.Error.Message, "upstream 529")
			require.Nil(t, p.state().Turn)
		})
	}
}

// At its deadline, a step is ended by the turn's own timer or by the worker's failure, whichever is read first.
func TestStepThatEndsAtItsDeadlineHasOneCode(t *testing.T) {
	fail := func(p *play, asked enriched, opts ...recordOption) effects {
		opts = append(opts, header(topics.HeaderErrorReason, "too late"))
		return p.send("think-dlq", `{"latest_input":`+string(asked.LatestInput)+`}`, opts...)
	}
	late := header("turntable.reason", "deadline")
	for name, c := range map[string]struct {
		end  func(p *play, asked enriched) effects
		code topics.Code
	}{
		"timer first": {func(p *play, asked enriched) effects {
			out := p.wait(p.rules.ThinkTimeout)
			require.Equal(t, []string{reasonNoStep}, fail(p, asked, late).letters())
			return out
		}, topics.CodeThinkTimeout},
		"failure first": {func(p *play, asked enriched) effects {
			out := fail(p, asked, late)
			require.Empty(t, emitted[answered](p.wait(p.rules.ThinkTimeout)))
			return out
		}, topics.CodeThinkTimeout},
		"failure before its step opens": {func(p *play, asked enriched) effects {
			p.send("message-input", message("two"))
			early := fail(p, enriched{LatestInput: topics.Raw(message("two"))}, late)
			require.Empty(t, early, "it is held")
			return p.respond(asked, saying("done"))
		}, topics.CodeThinkTimeout},
		"failure with another reason": {func(p *play, asked enriched) effects {
			return fail(p, asked, header("turntable.reason", "other"))
		}, topics.CodeThinkFailed},
		"failure of a worker that gives no reason": {func(p *play, asked enriched) effects {
			return fail(p, asked)
		}, topics.CodeThinkFailed},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			answers := emitted[answered](c.end(p, p.ask("one")))
			require.NotEmpty(t, answers)
			require.Equal(t, c.code, answers[len(answers)-1].Error.Code)
		})
	}
}

// Failed calls of the model are paid, too.
func TestCostOfAFailedStepCountsForTheSession(t *testing.T) {
	for header, want := range map[string]float64{"0.25": 0.75, "1e-1": 0.6, "0": 0.5, "": 0.5, "-1": 0.5, "NaN": 0.5, "Inf": 0.5, "x": 0.5} {
		t.Run(header, func(t *testing.T) {
			p := newPlay(t)
			p.respond(p.ask("one"), saying("first")) // for 0.5
			failed := `{"latest_input":` + string(p.ask("two").LatestInput) + `}`
			opt := func(r *record) {
				r.Headers = append(r.Headers, &turnrow.Header{Name: []byte(topics.HeaderCost), Value: []byte(header)})
			}
			o := the[answered](t, p.send("think-dlq", failed, opt))
			require.InDelta(t, want, *o.Cost, 1e-9)
			p.send("think-dlq", failed, opt)
			require.InDelta(t, want, *p.ask("three").Cost, 1e-9, "once")
		})
	}
}

func TestThinkFailureOfAnotherStepChangesNothing(t *testing.T) {
	p := newPlay(t)
	first := p.ask("one")
	failed := `{"latest_input":` + string(first.LatestInput) + `}`
	p.respond(first, saying("done"))
	require.Equal(t, []string{reasonNoStep}, p.send("think-dlq", failed).letters())
	p.ask("two")
	require.Equal(t, []string{reasonOtherStep}, p.send("think-dlq", failed).letters())
	require.NotNil(t, p.state().Turn)
}

// A worker that crashes before it commits writes its failure again. By then the same may have been asked again.
func TestARepeatedThinkFailureEndsOneTurn(t *testing.T) {
	p := newPlay(t)
	failed := `{"session_id":"s1","latest_input":` + string(p.ask("hi").LatestInput) + `,"timestamp":"t"}`
	require.Len(t, emitted[answered](p.send("think-dlq", failed)), 1)
	p.ask("hi")
	require.Equal(t, []string{reasonSameFailure}, p.send("think-dlq", failed).letters())
	require.Len(t, emitted[answered](p.send("think-dlq", strings.Replace(failed, `"t"`, `"u"`, 1))), 1)

	unknown := `{"originalValue":null,"error":"overloaded"}` // two of these may say the same
	for range 2 {
		p.ask("hi")
		require.Len(t, emitted[answered](p.send("think-dlq", unknown)), 1)
	}
}

func TestTombstoneClearsTheConversation(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("one"), saying("first"))
	require.Empty(t, p.tombstone("think-request-response"))
	asked := p.ask("two")
	require.Nil(t, asked.History)
	require.Nil(t, asked.Cost)
}

func TestTombstoneDoesNotChangeTheOpenTurn(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("one"), saying("first"))
	p.respond(p.ask("two"), calling("t1"))
	p.tombstone("think-request-response")
	asked := the[enriched](t, p.result("t1", "x"))
	require.Contains(t, string(asked.History), "first", "its steps build on their own response")
	require.Contains(t, string(asked.History), "two")
	require.Equal(t, "done", the[answered](t, p.respond(asked, saying("done"))).Content)
	require.Contains(t, string(p.ask("three").History), "first")
}

func TestAnswerTooLargeForTheRowIsAnError(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("one"), saying("first"))
	out := p.respond(p.ask("two"), saying(strings.Repeat("x", p.rules.RowLimit)))
	require.Equal(t, topics.CodeTooLarge, the[answered](t, out).Error.Code)
	require.NotContains(t, string(p.ask("three").History), "two", "the history is unchanged")
}

func TestEmptyReplyEndsTheTurnWithItsCode(t *testing.T) {
	p := newPlay(t)
	asked := p.ask("Which berth?")
	failed := fmt.Sprintf(`{"session_id":"s1","latest_input":%s}`, asked.LatestInput)
	out := the[answered](t, p.send("think-dlq", failed, header(topics.HeaderReason, topics.ReasonEmpty)))
	require.Equal(t, topics.CodeEmptyResponse, out.Error.Code)
}

// What is wrong with a call is told to the model as its result; the tool does not run. The other calls do.
func TestInvalidCallIsRefusedAndTheOthersRun(t *testing.T) {
	p := newPlay(t)
	es := p.respond(p.ask("two clocks"), strings.Replace(calling("c1", "c2"), `"tool_use_id":"c1"`,
		`"tool_use_id":"c1","invalid":"the arguments are an array"`, 1))
	require.Len(t, emitted[called](es), 1)
	require.Equal(t, "c1", *the[refused](t, es).ToolUseID)
	asked := the[enriched](t, p.result("c2", "noon"))
	require.Contains(t, string(asked.LatestInput), `{"error":"the arguments are an array","reason":"invalid_tool_call"}`)
	require.Contains(t, string(asked.LatestInput), "noon")
}

// The state of a provider is a part of the history, which no output has.
func TestMetadataOfAReplyIsInTheHistoryOfTheNextStep(t *testing.T) {
	const metadata = `{"agent":"pilot","state":{"provider":"p","model":"m","data":[1,"c2ln"]}}`
	p := newPlay(t)
	es := p.respond(p.ask("clock"), strings.Replace(callingFor(wanted{"c1", "look", `{}`}), `"role":"assistant",`,
		`"role":"assistant","metadata":`+metadata+`,`, 1))
	require.NotContains(t, fmt.Sprintf("%+v", emitted[called](es)), "c2ln")
	asked := the[enriched](t, p.result("c1", "noon"))
	require.Contains(t, string(asked.History), metadata)
	out := the[answered](t, p.respond(asked, saying("noon")))
	require.NotContains(t, fmt.Sprintf("%+v", out), "c2ln")
	require.Contains(t, string(p.ask("again").History), metadata)
}
