package turn

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
)

// A tool_use_id may be used again. A result says nothing but its id, so that of an ended call is taken for late as long
// as no call is open that it could answer: workers that answer a repeated call again write other bytes, and the next
// call of that id must not get them.

// secondUse is a session whose first turn used t1, and whose second is asking the model.
func secondUse(t *testing.T) (*play, Enriched) {
	p := newPlay(t)
	p.respond(p.ask("one"), calling("t1"))
	p.respond(the[Enriched](t, p.result("t1", "first")), saying("done"))
	return p, p.ask("two")
}

func TestAnIDUsedAgainIsAnsweredAfterItsCallAlone(t *testing.T) {
	t.Run("after its call", func(t *testing.T) {
		p, asked := secondUse(t)
		p.respond(asked, calling("t1"))
		require.Contains(t, string(the[ToolMessage](t, p.result("t1", "second")).Content), "second")
	})
	t.Run("ahead of its call", func(t *testing.T) {
		p, asked := secondUse(t)
		require.Equal(t, []string{reasonCallEnded}, p.result("t1", "second").letters())
		p.respond(asked, calling("t1"))
		require.Contains(t, string(the[ToolMessage](t, p.wait(p.rules.ToolTimeout)).Content), `"reason":"timeout"`)
	})
}

func TestAnotherAnswerToAnEndedCallIsNotThatOfTheNext(t *testing.T) {
	p, asked := secondUse(t)
	require.Equal(t, []string{reasonCallEnded}, p.result("t1", "first, once more").letters())
	p.respond(asked, calling("t1"))
	require.Contains(t, string(the[ToolMessage](t, p.result("t1", "second")).Content), "second")
}

// A crash that loses the second use of an id brings its result ahead of its call. The call is made again, and whoever
// answers it again is heard.
func TestAnIDUsedAgainSurvivesACrash(t *testing.T) {
	p, asked := secondUse(t)
	row, parts := p.row, maps.Clone(p.parts)
	response := response(asked, calling("t1"))
	call := p.send("think-request-response", response)
	before := the[ToolMessage](t, p.result("t1", "second"))

	p.row, p.parts = row, parts
	require.Equal(t, []string{reasonCallEnded}, p.result("t1", "second").letters())
	require.Equal(t, call.ids(), p.send("think-request-response", response).ids(), "the call is repeated")
	out := p.result("t1", "second")
	require.Equal(t, string(before.Content), string(the[ToolMessage](t, out).Content))
}

// A crash that loses both uses brings both results ahead of both calls, and the first call takes whichever is held.
func TestTwoLostUsesOfAnIDCannotBeToldApart(t *testing.T) {
	p := newPlay(t)
	require.Equal(t, []string{reasonNoCall}, p.result("t1", "first").letters(), "ahead of its turn")
	asked := p.ask("one")
	require.Empty(t, p.result("t1", "second"))
	require.Contains(t, string(the[ToolMessage](t, p.respond(asked, calling("t1"))).Content), "second")
}
