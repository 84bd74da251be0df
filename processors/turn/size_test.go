package turn

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func TestHeldResultsGoFirstWhereTheRowIsFull(t *testing.T) {
	p := newPlay(t)
	asked := p.ask("hi")
	require.Empty(t, p.result("t9", strings.Repeat("x", 600<<10)))
	out := p.respond(asked, `"last_input_response":[{"role":"assistant","content":"`+strings.Repeat("y", 400<<10)+`"}],`+
		`"tool_uses":[{"tool_use_id":"t1","name":"look"}]`)
	require.Equal(t, []string{reasonNoRoom}, out.letters())
	require.Len(t, emitted[called](out), 1)
}

func TestAnOrdinaryLargeResultReachesTheModel(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("hi"), calling("t1"))
	out := p.result("t1", strings.Repeat("x", 700<<10))
	m := the[toolMessage](t, out)
	has(t, string(m.Content), "xxx")
	has(t, string(m.Metadata), `"result":null`)
	has(t, string(m.Metadata), `"tool_count":1`)
	require.Len(t, emitted[completed](out), 1)
	require.Len(t, emitted[enriched](out), 1)
	fits(t, p, out)
}

func TestResultsTooLargeTogetherAreReplacedTheLargestFirst(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.RowLimit = r.RecordLimit })
	p.respond(p.ask(strings.Repeat("q", 352<<10)), calling("t1", "t2", "t3"))
	p.result("t1", strings.Repeat("a", 340<<10))
	p.result("t2", "small")
	out := p.result("t3", strings.Repeat("c", 330<<10))
	content := string(the[toolMessage](t, out).Content)
	has(t, content, `"tool_use_id":"t1","name":"look","result":{"error":`)
	has(t, content, `"reason":"too_large"`)
	has(t, content, "small")
	has(t, content, "ccc")
	fits(t, p, out)
}

// has is require.Contains for texts that are too long to print.
func has(t tb, text, part string) {
	t.Helper()
	require.True(t, strings.Contains(text, part), "%d bytes without %q", len(text), part)
}

func TestAResultTheRowHasNoRoomForIsReplaced(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask(strings.Repeat("q", 400<<10)), calling("t1", "t2"))
	require.Empty(t, p.result("t1", strings.Repeat("a", 600<<10)))
	require.Contains(t, string(p.resultOf(0).Result), "too_large")
	require.Equal(t, []string{reasonCallEnded}, p.result("t1", "smaller now").letters())
}

func TestTheLastResultTheRowHasNoRoomForIsReplaced(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask(strings.Repeat("q", 400<<10)), calling("t1", "t2"))
	p.result("t1", "small")
	content := string(the[toolMessage](t, p.result("t2", strings.Repeat("a", 600<<10))).Content)
	has(t, content, "too_large")
	has(t, content, "small")
}

func TestAConversationTooLargeForAnotherStepEndsTheTurn(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("one"), saying("first"))
	p.respond(p.ask("two"), `"last_input_response":[{"role":"assistant","content":"`+strings.Repeat("y", 970<<10)+`"}],`+
		`"tool_uses":[{"tool_use_id":"t1","name":"look"}]`)
	if p.state().Turn != nil {
		out := p.result("t1", strings.Repeat("x", 40<<10))
		require.Len(t, emitted[completed](out), 1, "the call has its result all the same")
		fits(t, p, out)
	}
	asked := p.ask("three")
	require.NotContains(t, string(asked.History), "two")
}

// encode returns the records among the effects.
func (p *play) encode(out effects) (records []encoded) {
	o := outcome{Effects: slices.Clone(out)}
	require.NoError(p.tb, p.bind.encode(&o))
	for _, e := range o.Effects {
		if r, ok := e.(*encoded); ok {
			records = append(records, *r)
		}
	}
	return records
}

// fits checks that what is written is within the limit, as it goes over the wire.
func fits(t tb, p *play, out effects) {
	t.Helper()
	for _, e := range p.encode(out) {
		require.LessOrEqual(t, len(e.raw)+2*len(e.key)+len(e.id)+len(topics.HeaderID), p.rules.RecordLimit, e.stream)
	}
}
