package peer

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

func TestLargeEndThatIsReadBeforeItsCall(t *testing.T) {
	p := newHarness(t)
	call := p.delegation(callID, asking)
	es := p.Handle(p.replied(attemptOf(t, p.Handle(call)), func(r *peerwire.Reply) { r.Result = strings.Repeat("r", 900_000) }))
	settle := p.own("", machinetest.Only[topics.PeerCommand](t, es))
	first := ends(p.Handle(settle))
	require.Len(t, first, 2)

	p.Row = nil // a crash
	require.Empty(t, p.Handle(settle))
	require.Equal(t, first.Records(), ends(p.Handle(call)).Records())
	require.Less(t, len(p.Row), maxKeptOfCall)
}
