package turn

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// A tool_use_id may be used again. Where a result says nothing but its tool_use_id, that of an ended call is taken for
// late as long as no call is open that it could answer: workers that answer a repeated call again write other bytes,
// and the next call of that id must not get them.

// secondUse is a session whose first turn used t1, and whose second is asking the model.
func secondUse(t *testing.T) (*play, enriched) {
	p := newPlay(t)
	p.respond(p.ask("one"), calling("t1"))
	p.respond(the[enriched](t, p.result("t1", "first")), saying("done"))
	return p, p.ask("two")
}

func TestReusedToolUseIDIsAnsweredOnlyAfterItsCall(t *testing.T) {
	t.Run("after its call", func(t *testing.T) {
		p, asked := secondUse(t)
		p.respond(asked, calling("t1"))
		require.Contains(t, string(the[toolMessage](t, p.result("t1", "second")).Content), "second")
	})
	t.Run("ahead of its call", func(t *testing.T) {
		p, asked := secondUse(t)
		require.Equal(t, []string{reasonCallEnded}, p.result("t1", "second").letters())
		p.respond(asked, calling("t1"))
		require.Contains(t, string(the[toolMessage](t, p.wait(p.rules.ToolTimeout)).Content), `"reason":"timeout"`)
	})
}

func TestSecondAnswerToAnEndedCallDoesNotEndTheNextCall(t *testing.T) {
	p, asked := secondUse(t)
	require.Equal(t, []string{reasonCallEnded}, p.result("t1", "first, once more").letters())
	p.respond(asked, calling("t1"))
	require.Contains(t, string(the[toolMessage](t, p.result("t1", "second")).Content), "second")
}

// A crash that loses the second use of an id brings its result ahead of its call. The call is made again, and whoever
// answers it again is heard.
func TestAnIDUsedAgainSurvivesACrash(t *testing.T) {
	p, asked := secondUse(t)
	row, parts := p.row, maps.Clone(p.parts)
	response := response(asked, calling("t1"))
	call := p.send("think-request-response", response)
	before := the[toolMessage](t, p.result("t1", "second"))

	p.row, p.parts = row, parts
	require.Equal(t, []string{reasonCallEnded}, p.result("t1", "second").letters())
	require.Equal(t, call.ids(), p.send("think-request-response", response).ids(), "the call is repeated")
	out := p.result("t1", "second")
	require.Equal(t, string(before.Content), string(the[toolMessage](t, out).Content))
}

// A worker that knows repeated calls answers none of them again: its result, which names its call, is held.
func TestAResultThatNamesTheOpenStepsCallIsHeld(t *testing.T) {
	p, asked := secondUse(t)
	row, parts := p.row, maps.Clone(p.parts)
	response := response(asked, calling("t1"))
	call := p.send("think-request-response", response).ids()[0]
	p.row, p.parts = row, parts

	turn, _, _ := strings.Cut(call, "/")
	for _, other := range []string{"f00/1/tool-use/0", turn + "/x/tool-use/0", turn + "/1/tool-use/", turn} {
		out := p.send("tool-use-result", toolResult("t1", "other"), header(topics.HeaderID, other+"/result"))
		require.Equal(t, []string{reasonCallEnded}, out.letters(), "%s names no call", other)
	}
	for _, other := range []string{turn + "/2/tool-use/0", turn + "/10/tool-use/0", turn + "/1/tool-use/1"} {
		out := p.send("tool-use-result", toolResult("t1", "of "+other), header(topics.HeaderID, other+"/result"))
		require.Empty(t, out, "%s may come", other)
	}
	named := header(topics.HeaderID, call+"/result")
	require.Empty(t, p.send("tool-use-result", toolResult("t1", "second"), named))
	require.Empty(t, p.send("tool-use-result", toolResult("t1", "second, again"), named), "the same, by its id")
	out := p.send("think-request-response", response)
	require.Equal(t, call, out.ids()[0])
	require.Contains(t, string(the[toolMessage](t, out).Content), `{"said":"second"}`)
	out = p.respond(the[enriched](t, out), saying("done"))
	require.ElementsMatch(t, []string{reasonTurnEnded, reasonUnclaimed, reasonUnclaimed}, out.letters())
}

// A crash that loses both uses brings both results ahead of both calls, and the first call takes whichever is held.
func TestTwoLostUsesOfAnIDCannotBeDistinguished(t *testing.T) {
	p := newPlay(t)
	require.Equal(t, []string{reasonNoCall}, p.result("t1", "first").letters(), "ahead of its turn")
	asked := p.ask("one")
	require.Empty(t, p.result("t1", "second"))
	require.Contains(t, string(the[toolMessage](t, p.respond(asked, calling("t1"))).Content), "second")
}

// A worker that crashes before it commits writes its failure again, at another offset. By then the model may have used
// the tool_use_id for another call.
func TestARepeatedFailureDoesNotEndTheNextCallOfItsID(t *testing.T) {
	failed := `{"tool_use_id":"t1","tool_id":"look","name":"look","input":{"at":1},"total_tools":1,"timestamp":"t"}`
	for name, held := range map[string]bool{"failed after its call": false, "held for its call": true} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			asked := p.ask("one")
			fail := func() effects {
				return p.send("tool-use-dlq", failed, header(topics.HeaderErrorReason, "broken"))
			}
			var out effects
			if held {
				require.Empty(t, fail())
				out = p.respond(asked, calling("t1"))
			} else {
				p.respond(asked, calling("t1"))
				out = fail()
			}
			has(t, string(the[toolMessage](t, out).Content), "broken")
			p.respond(the[enriched](t, out), calling("t1"))
			require.Empty(t, fail(), "the same failure again")
			has(t, string(the[toolMessage](t, p.result("t1", "second")).Content), "second")
		})
	}
}

func TestTheNextCallOfAnIDMayFailToo(t *testing.T) {
	p := newPlay(t)
	asked := p.ask("one")
	for _, at := range []string{"first", "second"} {
		p.respond(asked, calling("t1"))
		out := p.send("tool-use-dlq", fmt.Sprintf(`{"tool_use_id":"t1","name":"look","timestamp":%q}`, at),
			header(topics.HeaderErrorReason, at))
		has(t, string(the[toolMessage](t, out).Content), at)
		asked = the[enriched](t, out)
	}
}

// Where the same call fails in the same way again, its failure may be the same bytes. The id of the call that a worker
// passes on says which call has failed.
func TestAFailureMayNameItsCall(t *testing.T) {
	p := newPlay(t)
	asked := p.ask("one")
	failed := `{"tool_use_id":"t1","name":"look"}`
	var first effects
	for range 2 {
		out := p.respond(asked, calling("t1"))
		if first == nil {
			first = out
		}
		ours := strings.Replace(out.ids()[0], "/tool-use/", "/tool-use-dlq/", 1)
		require.Empty(t, p.send("tool-use-dlq", failed, header(topics.HeaderID, ours)), "our own are answered already")
		out = p.send("tool-use-dlq", failed, header(topics.HeaderID, out.ids()[0]))
		asked = the[enriched](t, out)
	}
	p.respond(asked, calling("t1"))
	require.Empty(t, p.send("tool-use-dlq", failed, header(topics.HeaderID, first.ids()[0]+"/late")))
	require.NotEmpty(t, p.state().Turn.Calls)
}

// A result that names its call is not given to another one of the same tool_use_id.
func TestANamedResultEndsItsOwnCallAlone(t *testing.T) {
	p := newPlay(t)
	first := p.respond(p.ask("one"), calling("t1")).ids()[0]
	asked := the[enriched](t, p.wait(p.rules.ToolTimeout))
	second := p.respond(asked, calling("t1", "t2")).ids()
	send := func(call, said string) effects {
		return p.send("tool-use-result", toolResult("t1", said), header(topics.HeaderID, call+"/result"))
	}
	require.Equal(t, []string{reasonCallEnded}, send(first, "late").letters())
	require.Equal(t, []string{reasonCallEnded}, send(second[1], "of another call").letters())
	require.Empty(t, send(second[0], "its own"))
	has(t, string(the[toolMessage](t, p.result("t2", "x")).Content), "its own")
}
