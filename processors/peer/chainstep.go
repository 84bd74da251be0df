package peer

import (
	"bytes"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/topics"
)

// rememberedEvents is how many events of an instance are remembered, each by digestSize bytes. An event that is repeated after
// so many others is chained twice. The row is written with every event, so the digests are short.
const (
	rememberedEvents = 4096
	digestSize       = 8
)

const ofEvent = "peer event"

// chainStep appends an event of an instance to its chain. id is the event record's turntable.id, or what else identifies it. It
// returns the record of the audit and the new row; fresh is false for an event that is in the chain already, which changes
// nothing. It depends on nothing else, so that events that are read again after a crash, from an older row, give the same
// records.
func chainStep(row *peerrow.ChainRow, instance, id string, event topics.PeerAudit) (record topics.PeerAudit, next *peerrow.ChainRow, fresh bool) {
	sum := digests.Of(ofEvent, id)
	d := sum[:digestSize]
	if chained(row.GetRemembered(), d) {
		return record, row, false
	}
	record, head := headOf(instance, row).Append(event)
	memory := append(bytes.Clone(row.GetRemembered()), d...)
	if over := len(memory) - rememberedEvents*digestSize; over > 0 {
		memory = memory[over:]
	}
	return record, &peerrow.ChainRow{Version: peerrow.Version, Seq: head.Seq, Hash: head.Hash, Remembered: memory}, true
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
