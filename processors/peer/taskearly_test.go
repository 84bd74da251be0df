package peer

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
)

func TestLargeEndThatIsReadBeforeItsCall(t *testing.T) {
	p := newHarness(t)
	call := p.delegation(callID, asking)
	es := p.handle(p.replied(attemptOf(t, p.handle(call)), func(r *peerwire.Reply) { r.Result = strings.Repeat("r", 900_000) }))
	settle := p.own("", onlyValue[asked](t, es))
	first := ends(p.handle(settle))
	require.Len(t, first, 2)

	p.row = nil // a crash
	require.Empty(t, p.handle(settle))
	require.Equal(t, first, ends(p.handle(call)))
	require.Less(t, len(p.row), maxKeptOfCall)
}
