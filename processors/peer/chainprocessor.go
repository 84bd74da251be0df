package peer

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/timed"
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
	b := chainBinding{catalog}
	edges := processors.Edges(catalog.PeerChainGroup(), processors.Input(catalog.PeerEvents, b.onEvent))
	return goka.DefineGroup(catalog.PeerChainGroup(), append(edges,
		goka.Persist(timed.Of(peerrow.ChainTable, b.onDeadline)), output(catalog.PeerAudit),
	)...), nil
}

// chainBinding connects chainStep to Goka.
type chainBinding struct{ topics topics.Catalog }

// The reasons of dead letters of ChainGraph.
const (
	reasonEvent = "peer: the event has no instance ID, no type or no task ID"
	reasonChain = "peer: the row of the instance's chain cannot be decoded"
)

// onEvent appends an event to the chain of its key. A row with a newer version stops the processor. A row that cannot be decoded
// is kept, and its events are dead-lettered: a chain that began again would hide what was lost.
func (b chainBinding) onEvent(c *processors.Context, in codec.Decoded[topics.PeerAudit]) error {
	event := in.Value
	if in.Tombstone() || c.Key() == "" || event.Event == "" || event.TaskID == "" && event.Event != topics.PeerRefused {
		return c.DeadLetter(reasonEvent)
	}
	row, err := peerrow.ChainTable.Of(c.Value())
	if errors.Is(err, rows.ErrVersion) {
		return err
	}
	if err != nil {
		return c.DeadLetter(reasonChain)
	}
	record, next, fresh := chainStep(row, c.Key(), c.CauseID(), event)
	if !fresh {
		return nil
	}
	key := record.TaskID
	if key == "" {
		key = record.InstanceID
	}
	id := record.InstanceID + "/" + strconv.FormatInt(record.Seq, 10)
	if err := processors.EmitWithID(c, b.topics.PeerAudit, key, record, id); err != nil {
		return err
	}
	return c.SetValue(next)
}

// onDeadline does nothing: the row has no deadlines.
func (chainBinding) onDeadline(*processors.Context) error { return nil }
