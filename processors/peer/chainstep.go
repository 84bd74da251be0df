package peer

import (
	"bytes"
	"cmp"
	"strconv"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// rememberedEvents is how many events of an instance are remembered, each by digestSize bytes. An event that is repeated after
// so many others is chained twice. The row is written with every event, so the digests are short.
const (
	rememberedEvents = 4096
	digestSize       = 8
)

const ofEvent = "peer event"

// The reasons of dead letters of ChainGraph.
const (
	reasonEvent = "peer: the event has no instance ID, no type or no task ID"
	reasonChain = "peer: the row of the instance's chain cannot be decoded"
)

// auditEvent is a record of peer-events.
type auditEvent struct {
	*machine.Record
	Event topics.PeerAudit
}

// applyChain appends an event of an instance to its chain, unless the event is in the chain already. It does not modify row. It
// depends on nothing else, so that events that are read again after a crash, from an older row, give the same records. A nil event
// is a deadline, of which a row has none.
func applyChain(row *peerrow.ChainRow, instance string, e *auditEvent, catalog topics.Catalog) (out machine.Outcome[*peerrow.ChainRow]) {
	var es machine.Effects
	switch {
	case e == nil:
		return out
	case e.Tombstone() || instance == "" || e.Event.Event == "" || e.Event.TaskID == "" && e.Event.Event != topics.PeerRefused:
		es.DeadLetter(reasonEvent)
		out.Effects = es.List()
		return out
	}
	sum := digests.Of(ofEvent, e.ID)
	d := sum[:digestSize]
	if chained(row.GetRemembered(), d) {
		return out
	}
	record, head := headOf(instance, row).Append(e.Event)
	memory := append(bytes.Clone(row.GetRemembered()), d...)
	if over := len(memory) - rememberedEvents*digestSize; over > 0 {
		memory = memory[over:]
	}
	machine.Emit(&es, catalog.PeerAudit, cmp.Or(record.TaskID, instance), instance+"/"+strconv.FormatInt(record.Seq, 10), record)
	next := &peerrow.ChainRow{Version: peerrow.Version, Seq: head.Seq, Hash: head.Hash, Remembered: memory}
	return machine.Outcome[*peerrow.ChainRow]{Changed: true, Row: next, Effects: es.List()}
}

// headOf returns the head of the chain in a row. A nil row is a chain without records.
func headOf(instance string, row *peerrow.ChainRow) Head {
	return Head{InstanceID: instance, Seq: row.GetSeq(), Hash: row.GetHash()}
}

// chained reports whether the memory has a digest. Most repeats are recent, so it searches backwards.
func chained(memory, d []byte) bool {
	for end := len(memory); end >= digestSize; end -= digestSize {
		if bytes.Equal(memory[end-digestSize:end], d) {
			return true
		}
	}
	return false
}
