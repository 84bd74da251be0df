package gate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

// A purge that panics on a row that decodes is dead-lettered, and the row stays: what is open in it still ends at its deadline. Only a
// machine with PurgesAll deletes it.
func TestPurgeThatPanicsKeepsTheRow(t *testing.T) {
	c, err := topics.For("quay")
	require.NoError(t, err)
	for _, all := range []bool{false, true} {
		m := &machine.Machine[*gaterow.State, event]{
			Table: gaterow.Table, Broken: reasonBroken, Purges: purges, PurgesAll: all, Due: func(time.Time) event { return deadlineCame{} },
			Apply: func(_ *processors.Context, _ *gaterow.State, e event) (out machine.Outcome[*gaterow.State], _ error) {
				if purges(e) {
					panic("a bug")
				}
				return machine.Outcome[*gaterow.State]{Changed: true, Row: &gaterow.State{Version: rowVersion}}, nil
			},
		}
		d := processortest.New(t, time.UnixMilli(1_790_000_000_000), m.Graph(c.GateGroup(), []processors.Source{
			machine.Input(m, c.SessionControl, func(r *machine.Record, v topics.Control) event { return controlled{r, v} }),
		}))
		rows := processortest.Table(d, c.GateGroup(), gaterow.Table.Codec())
		in := processortest.In(d, c.SessionControl)
		in.Pipe("s1", topics.Control{Action: topics.ActionCancel})
		in.Pipe("s1", topics.Control{Action: topics.ActionPurge})
		_, kept := rows.Get("s1")
		require.Equal(t, !all, kept)
		letters := processortest.OutRaw(d, string(c.GateGroup())+"-dlq")
		require.Len(t, letters.Drain(), map[bool]int{false: 1, true: 0}[all], "the purge itself")
	}
}
