package peer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

// A chain in which a task has no end would look as if a record had been removed.
func TestTaskEndsInTheChainInWhichItBegan(t *testing.T) {
	for _, next := range []string{"", "hq-2"} {
		p := newHarness(t)
		a := attemptOf(t, p.Handle(p.delegation(callID, asking)))
		p.configure(func(s *Settings) { s.Enabled, s.InstanceID = false, next })
		end := machinetest.Only[topics.PeerAudit](t, p.settle(p.replied(a)))
		require.Equal(t, topics.PeerAcknowledged, end.Event)
		require.Equal(t, "hq-1", end.InstanceID)
	}
}

func TestTaskThatBeganWithoutAnInstanceIDHasNoAudit(t *testing.T) {
	p := newHarness(t)
	p.configure(func(s *Settings) { s.Enabled, s.InstanceID = false, "" })
	es := p.Handle(p.delegation(callID, asking))
	p.configure(func(s *Settings) { s.InstanceID = "hq-1" })
	es = append(es, p.Handle(p.own("", machinetest.Only[topics.PeerCommand](t, es)))...)
	require.Empty(t, machinetest.Values[topics.PeerAudit](es))
	require.Len(t, machinetest.Values[topics.ToolUseResult](es), 1)
}
