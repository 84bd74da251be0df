package peer

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

// eventOf returns the event with an ID.
func eventOf(id int) *auditEvent {
	return &auditEvent{
		&machine.Record{ID: fmt.Sprint("id", id), Value: []byte("{}")},
		topics.PeerAudit{Event: topics.PeerSent, TaskID: fmt.Sprint("t", id), AtMS: int64(id)},
	}
}

// newChainWorld returns the row of the chain of hq-1, which has no deadlines.
func newChainWorld(t machinetest.TB) *machinetest.World[*peerrow.ChainRow, *auditEvent] {
	c, err := topics.For("harbor")
	require.NoError(t, err)
	return &machinetest.World[*peerrow.ChainRow, *auditEvent]{
		TB: t, Table: peerrow.ChainTable, Endless: true,
		Apply: func(row *peerrow.ChainRow, e *auditEvent) (machine.Outcome[*peerrow.ChainRow], error) {
			return applyChain(row, "hq-1", e, c), nil
		},
	}
}

// After a crash, events are read again from an older row, and the records since then are still in the audit.
func TestChainFromAnOlderRowHasTheSameRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := rapid.SliceOfN(rapid.IntRange(0, 20), 0, 60).Draw(t, "events") // with repeats
		w := newChainWorld(t)
		var audit []topics.PeerAudit
		var saved []byte
		next, savedAt := 0, 0
		step := func() {
			audit = append(audit, machinetest.Values[topics.PeerAudit](w.Handle(eventOf(log[next])))...)
			next++
		}
		for range rapid.IntRange(0, 100).Draw(t, "moves") {
			switch move := rapid.IntRange(0, 9).Draw(t, "move"); {
			case move == 0:
				saved, savedAt = bytes.Clone(w.Row), next
			case move == 1:
				w.Row, next = bytes.Clone(saved), savedAt
			case next < len(log):
				step()
			}
		}
		for next < len(log) {
			step()
		}
		seen := map[int]bool{}
		for _, id := range log {
			seen[id] = true
		}
		records := Sorted("hq-1", audit)
		require.Len(t, records, len(seen), "every event once, and every repeat is the same record")
		if w.Row != nil {
			require.Empty(t, Verify(Chain{Records: records, Head: headOf("hq-1", w.Read())}))
		}
		for _, r := range records {
			require.Equal(t, fmt.Sprint("t", r.AtMS), r.TaskID)
		}
	})
}

func TestChainRemembersItsNewestEvents(t *testing.T) {
	w := newChainWorld(t)
	var row *peerrow.ChainRow
	chain := func(id int) (fresh bool) {
		out, err := w.Apply(row, eventOf(id)) // without crashes, which would take long
		require.NoError(t, err)
		if out.Changed {
			row = out.Row
		}
		return out.Changed
	}
	for id := range rememberedEvents + 1 {
		require.True(t, chain(id))
	}
	require.Len(t, row.Remembered, rememberedEvents*digestSize)
	require.False(t, chain(rememberedEvents))
	require.False(t, chain(1))
	require.True(t, chain(0), "it is forgotten")
	require.EqualValues(t, rememberedEvents+2, row.Seq)
}
