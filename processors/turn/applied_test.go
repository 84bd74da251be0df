package turn

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Who applies events by Apply and writes the row by EncodeState, both of them public, writes one that says what it is.
func TestAppliedStateSaysItsVersion(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("one"), calling("t1", "t2", "t3"))
	s, err := DecodeState(p.row)
	require.NoError(t, err)
	e, ok := p.event("tool-use-result", []byte(toolResult("t1", said)))
	require.True(t, ok)
	out := Apply(s, e, p.now, p.rules)
	require.NotEmpty(t, out.State.Turn.Results)
	raw, err := EncodeState(out.State)
	require.NoError(t, err)
	got, err := DecodeState(raw)
	require.NoError(t, err)
	require.Equal(t, uint32(rowTurn), got.Version, "an older build takes t1 for open")
}

// A response needs the tail that stands apart, which it replaces: without it a step would go on from both.
func TestResponseNeedsTheTailThatStandsApart(t *testing.T) {
	for name, more := range map[string]string{"calls": calling("t5"), "answers": saying("done")} {
		t.Run(name, func(t *testing.T) {
			p := midway(t)
			asked := the[Enriched](t, p.result("t4", "x"))
			s, err := DecodeState(p.row)
			require.NoError(t, err)
			require.NotEmpty(t, s.Turn.TailParts)
			e, ok := p.event("think-request-response", []byte(response(asked, more)))
			require.True(t, ok)
			out := Apply(s, e, p.now, p.rules)
			if out.Starved {
				return
			}
			require.NotNil(t, out.State)
			require.Empty(t, out.State.Turn.GetTailParts(), "the old tail stands in front of the new one")
		})
	}
}
