package peer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// A chain in which a task has no end would look as if a record had been removed.
func TestTaskEndsInTheChainInWhichItBegan(t *testing.T) {
	for _, next := range []string{"", "hq-2"} {
		p := newHarness(t)
		a := attemptOf(t, p.handle(p.delegation(callID, asking)))
		p.configure(func(s *Settings) { s.Enabled, s.InstanceID = false, next })
		end := onlyValue[audited](t, p.settle(p.replied(a)))
		require.Equal(t, topics.PeerAcknowledged, end.Event)
		require.Equal(t, "hq-1", end.InstanceID)
	}
}

func TestTaskThatBeganWithoutAnInstanceIDHasNoAudit(t *testing.T) {
	p := newHarness(t)
	p.configure(func(s *Settings) { s.Enabled, s.InstanceID = false, "" })
	es := p.handle(p.delegation(callID, asking))
	p.configure(func(s *Settings) { s.InstanceID = "hq-1" })
	es = append(es, p.handle(p.own("", onlyValue[asked](t, es)))...)
	require.Empty(t, valuesOf[audited](es))
	require.Len(t, valuesOf[toolAnswered](es), 1)
}
