package turn

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// What FlightDeck's SDK workers write when a model fails: a response to think-request-response, then the step to think-dlq.
const (
	sdkReport  = `{"sessionId":"s1","userId":"mira","cost":null,"prevSessionCost":null,"messages":[{"role":"assistant","content":"Sorry"}],"endTurn":true}`
	sdkFailure = `{"originalValue":null,"error":"status 529"}`
)

func TestErrorReportOfAWorkerEndsNoStep(t *testing.T) {
	// An answered turn first, so that there are a history and a cost to lose.
	started := func(t *testing.T) (*play, enriched) {
		p := newPlay(t)
		p.respond(p.ask("hi"), saying("hello"))
		return p, p.ask("more")
	}
	unharmed := func(t *testing.T, p *play, asked enriched) {
		next := p.ask("again")
		require.Equal(t, string(asked.History), string(next.History))
		require.Equal(t, asked.Cost, next.Cost)
		require.Equal(t, "fine", the[answered](t, p.respond(next, saying("fine"))).Content)
	}
	t.Run("before the failure", func(t *testing.T) {
		p, asked := started(t)
		require.Equal(t, []string{reasonErrorReport}, p.send("think-request-response", sdkReport).letters())
		require.Equal(t, topics.CodeThinkFailed, the[answered](t, p.send("think-dlq", sdkFailure)).Error.Code)
		unharmed(t, p, asked)
	})
	t.Run("after the failure", func(t *testing.T) {
		p, asked := started(t)
		require.Equal(t, topics.CodeThinkFailed, the[answered](t, p.send("think-dlq", sdkFailure)).Error.Code)
		require.Equal(t, []string{reasonErrorReport}, p.send("think-request-response", sdkReport).letters())
		unharmed(t, p, asked)
	})
	t.Run("while the next step is open", func(t *testing.T) {
		p, _ := started(t)
		p.send("message-input", message("next"))
		next := the[enriched](t, p.send("think-dlq", sdkFailure))
		require.Equal(t, []string{reasonErrorReport}, p.send("think-request-response", sdkReport).letters())
		require.Equal(t, "right", the[answered](t, p.respond(next, saying("right"))).Content)
	})
	t.Run("without a failure", func(t *testing.T) {
		p, asked := started(t)
		p.send("think-request-response", sdkReport)
		require.Equal(t, topics.CodeThinkTimeout, the[answered](t, p.wait(p.rules.ThinkTimeout)).Error.Code)
		unharmed(t, p, asked)
	})
}

func TestResponseThatOmitsTheHistoryIsAppendedToIt(t *testing.T) {
	one, two := message("one"), message("two")
	said := `[{"role":"assistant","content":"a"}]`
	first := "[" + one + `,{"role":"assistant","content":"first"}]`
	for name, c := range map[string]struct{ response, history string }{
		"neither history nor input": {`"last_input_response":` + said, joined(first, two, said)},
		"null history and input":    {`"previous_messages":null,"last_input_message":null,"last_input_response":` + said, joined(first, two, said)},
		"no history":                {`"last_input_message":` + two + `,"last_input_response":` + said, joined(first, two, said)},
		"camelCase":                 {`"lastInputMessage":` + two + `,"lastInputResponse":` + said, joined(first, two, said)},
		"messages of the model":     {`"messages":` + said, joined(first, two, said)},
		"older image":               {`"messages":[` + two + `,` + said[1:], joined("[]", two, said)},
		"older image, no timestamp": {`"messages":[{"role":"user","content":"two"},` + said[1:], joined("[]", `{"role":"user","content":"two"}`, said)},
		"another user message":      {`"messages":[{"role":"user","content":"x"},` + said[1:], joined(first, two, `[{"role":"user","content":"x"},`+said[1:])},
		"empty history is trusted":  {`"previous_messages":[],"last_input_message":` + two + `,"last_input_response":` + said, joined("[]", two, said)},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			p.send("think-request-response", response(the[enriched](t, p.send("message-input", one)), saying("first")))
			the[enriched](t, p.send("message-input", two))
			p.send("think-request-response", `{"cost":0.5,"end_turn":true,`+c.response+`}`)
			require.JSONEq(t, c.history, string(p.ask("three").History))
		})
	}
}

// joined returns a history with an input and what the model said.
func joined(history, input, said string) string {
	return string(topics.Splice(topics.Raw(history), topics.Raw(input), topics.Raw(said)))
}

func TestToolMessageIsAppendedForAWorkerThatOmitsIt(t *testing.T) {
	p := newPlay(t)
	p.ask("hi")
	p.send("think-request-response", `{"cost":0.5,"last_input_response":[{"role":"assistant","content":"look"}],`+
		`"tool_uses":[{"tool_use_id":"t1","name":"look"}]}`)
	asked := the[enriched](t, p.result("t1", "42"))
	p.send("think-request-response", `{"cost":0.75,"last_input_response":[{"role":"assistant","content":"done"}],"end_turn":true}`)
	history, err := topics.Elements(p.ask("more").History)
	require.NoError(t, err)
	require.Len(t, history, 4)
	require.Contains(t, string(history[0]), `"hi"`)
	require.JSONEq(t, string(asked.LatestInput), string(history[2]))
	require.Contains(t, string(history[3]), "done")
}

func TestBlankUserOfAResponseIsTheMessages(t *testing.T) {
	for _, user := range []string{"null", `""`, `" "`} {
		p := newPlay(t)
		asked := p.ask("hi") // mira's
		o := the[answered](t, p.respond(asked, `"user_id":`+user+`,`+saying("hello")))
		require.Equal(t, ptr("mira"), o.UserID)
		next := the[enriched](t, p.send("message-input", `{"session_id":"s1","role":"user","content":"x"}`))
		require.Equal(t, ptr("mira"), next.UserID)
	}
}

func TestPromptIsGivenUpBeforeHeldRecords(t *testing.T) {
	p := newPlay(t)
	p.ask(strings.Repeat("x", 2000))
	require.NotEmpty(t, p.state().Turn.Prompt)
	p.rules.RowLimit = p.size() + 300
	p.send("tool-use-result", toolResult("t1", strings.Repeat("y", 1500)))
	require.Empty(t, p.state().Turn.Prompt)
	require.Len(t, p.state().Turn.Held, 1)
}
