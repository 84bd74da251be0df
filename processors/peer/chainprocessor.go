package peer

import (
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// ChainGraph returns the group "{agent}-peer-chain" for processors.New: the hash chain of an instance's audit, in one row per
// instance ID. It reads the events of all groups and doors of the instance from "{agent}-peer-events" and writes the audit to
// "{agent}-peer-audit", keyed by task ID. An event that is repeated is chained once, unless more than 4096 others came
// between. It returns an error if the agent's name is invalid.
//
// It reads one topic only. The order of an instance's events is therefore the same each time they are read, and so are the
// records that it writes again after a crash.
func ChainGraph(agent string) (*goka.GroupGraph, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("peer: %w", err)
	}
	// A row that cannot be decoded is kept, and its events are dead-lettered: a chain that began again would hide what was lost.
	m := &machine.Machine[*peerrow.ChainRow, *auditEvent]{
		Table: peerrow.ChainTable, Broken: reasonChain,
		Apply: func(c *processors.Context, row *peerrow.ChainRow, e *auditEvent) (machine.Outcome[*peerrow.ChainRow], error) {
			return applyChain(row, c.Key(), e, catalog), nil
		},
	}
	return m.Graph(catalog.PeerChainGroup(), []processors.Source{machine.Input(m, catalog.PeerEvents,
		func(r *machine.Record, v topics.PeerAudit) *auditEvent { return &auditEvent{r, v} })}, machine.Output(catalog.PeerAudit)), nil
}
