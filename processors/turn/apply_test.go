package turn

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
)

// The row that an event leaves says its version itself.
func TestAppliedStateHasTheVersionThatItsFieldsNeed(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("one"), calling("t1", "t2", "t3"))
	s, err := turnrow.Table.Unmarshal(p.row)
	require.NoError(t, err)
	e, ok := p.event("tool-use-result", []byte(toolResult("t1", said)))
	require.True(t, ok)
	out, err := applied(s, e, nil, p.now, p.rules)
	require.NoError(t, err)
	require.NotEmpty(t, out.State.Turn.Results)
	raw, err := turnrow.Table.Marshal(out.State)
	require.NoError(t, err)
	got, err := turnrow.Table.Unmarshal(raw)
	require.NoError(t, err)
	require.Equal(t, uint32(rowTurn), got.Version, "an older build takes t1 for open")
}

// A response replaces the tail of its turn, whose older bytes are in parts: Apply reads them.
func TestResponseReplacesATailThatIsInParts(t *testing.T) {
	for name, more := range map[string]string{"calls": calling("t5"), "answers": saying("done")} {
		t.Run(name, func(t *testing.T) {
			p := midway(t)
			asked := the[enriched](t, p.result("t4", "x"))
			s, err := turnrow.Table.Unmarshal(p.row)
			require.NoError(t, err)
			require.NotEmpty(t, s.Turn.TailParts)
			e, ok := p.event("think-request-response", []byte(response(asked, more)))
			require.True(t, ok)
			want, err := applied(p.state(), e, nil, p.now, p.rules)
			require.NoError(t, err)
			from := &counted{table: p.table()}
			out, err := applied(s, e, from, p.now, p.rules)
			require.NoError(t, err)
			require.NotZero(t, from.reads)
			for _, n := range out.NewParts {
				p.parts[n.Number] = n.Value
			}
			loadAll(t, out.State, p.table(), nil)
			require.Equal(t, string(want.State.Turn.GetTail()), string(out.State.Turn.GetTail()))
			require.Equal(t, string(want.State.History), string(out.State.History))
		})
	}
}

// An event reads only the parts that it needs, and is not applied if one of them cannot be read.
func TestApplyReadsOnlyThePartsThatTheEventNeeds(t *testing.T) {
	p := midway(t)
	unreadable := errors.New("disk failed")
	from := &failing{err: unreadable}
	apply := func(topic, value string) (outcome, error) {
		s, err := turnrow.Table.Unmarshal(p.row)
		require.NoError(t, err)
		e, ok := p.event(topic, []byte(value))
		require.True(t, ok)
		return applied(s, e, from, p.now, p.rules)
	}
	out, err := apply("message-input", message("this one waits"))
	require.NoError(t, err)
	require.True(t, out.Changed)
	require.Zero(t, from.reads)
	out, err = apply("tool-use-result", toolResult("t4", "the last result"))
	require.ErrorIs(t, err, unreadable)
	require.Equal(t, outcome{}, out)
	require.Equal(t, 1, from.reads)
}

// failing is a table whose parts cannot be read.
type failing struct {
	err   error
	reads int
}

func (f *failing) Part(uint32) ([]byte, error) {
	f.reads++
	return nil, f.err
}
