package delegation

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// cost is how many records and rows the group writes for an event.
func (p *harness) cost(e event) (es effects, written [2]int) {
	p.TB.Helper()
	out, err := p.Apply(p.Read(), e)
	require.NoError(p.TB, err)
	written[0] = len(out.Effects)
	if out.Changed {
		written[1] = 1
	}
	return p.Handle(e), written
}

// A delegation costs six records and three rows, one record and one row less without an announcement. The turns of the task and
// of the announcement are not counted.
func TestCostOfADelegation(t *testing.T) {
	p := newHarness(t)
	es, n := p.cost(p.delegation("a"))
	require.Equal(t, [2]int{3, 1}, n, "the answer, the status and the task")
	task := sent(t, es)
	target := newAgent(t, "research", func(c *Config) { c.Agents = []string{"front"} })
	_, n = target.cost(target.output("delegation/x", "42 boats", func(o *topics.Output) {
		o.ReplyTo = topics.DelegationRoute(topics.EncodeDelegationTask(taskOf(t, task)))
	}))
	require.Equal(t, [2]int{1, 0}, n, "the reply, which needs no row")
	es, n = p.cost(p.completed(task, "42 boats"))
	require.Equal(t, [2]int{2, 1}, n, "the status and the announcement")
	_, n = p.cost(p.output(onlyCallback(t, es).request, "There are 42 boats."))
	require.Equal(t, [2]int{0, 1}, n)
}

// The turns of sessions without delegations cost nothing.
func TestOrdinaryTurnsCostNothing(t *testing.T) {
	p := newHarness(t)
	for _, e := range []event{
		p.callOf("search", "a", `{}`), p.output("r1", "ok"), p.control(topics.ActionCancel), p.control(topics.ActionPurge),
		p.output("r2", "ok", func(o *topics.Output) { o.ReplyTo = topics.OriginRoute(topics.EncodeOrigin(chat("t", "U")), nil) }),
		p.peerReply(topics.PeerReply{TaskID: "other", PeerID: "p", State: topics.PeerDone}),
	} {
		_, n := p.cost(e)
		require.Equal(t, [2]int{}, n, "%T", e)
		require.Nil(t, p.Row)
	}
}
