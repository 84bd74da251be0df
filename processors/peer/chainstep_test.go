package peer

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/topics"
)

// eventOf returns the event with an ID.
func eventOf(id int) topics.PeerAudit {
	return topics.PeerAudit{Event: topics.PeerSent, TaskID: fmt.Sprint("t", id), AtMS: int64(id)}
}

// After a crash, events are read again from an older row, and the records since then are still in the audit.
func TestChainFromAnOlderRowHasTheSameRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := rapid.SliceOfN(rapid.IntRange(0, 20), 0, 60).Draw(t, "events") // with repeats
		var audit []topics.PeerAudit
		var row, saved []byte
		next, savedAt := 0, 0
		step := func() {
			var r *peerrow.ChainRow
			if row != nil {
				var err error
				r, err = peerrow.ChainTable.Unmarshal(row)
				require.NoError(t, err)
			}
			record, after, fresh := chainStep(r, "hq-1", fmt.Sprint("id", log[next]), eventOf(log[next]))
			next++
			if !fresh {
				return
			}
			audit = append(audit, record)
			var err error
			row, err = peerrow.ChainTable.Marshal(after)
			require.NoError(t, err)
		}
		for range rapid.IntRange(0, 100).Draw(t, "moves") {
			switch move := rapid.IntRange(0, 9).Draw(t, "move"); {
			case move == 0:
				saved, savedAt = bytes.Clone(row), next
			case move == 1:
				row, next = bytes.Clone(saved), savedAt
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
		if row != nil {
			r, err := peerrow.ChainTable.Unmarshal(row)
			require.NoError(t, err)
			require.Empty(t, Verify(Chain{Records: records, Head: headOf("hq-1", r)}))
		}
		for _, r := range records {
			require.Equal(t, fmt.Sprint("t", r.AtMS), r.TaskID)
		}
	})
}

func TestChainRemembersItsNewestEvents(t *testing.T) {
	var row *peerrow.ChainRow
	chain := func(id int) (fresh bool) {
		_, row, fresh = chainStep(row, "hq-1", fmt.Sprint("id", id), eventOf(id))
		return fresh
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
