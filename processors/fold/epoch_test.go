package fold

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// Tests of users begin at the epoch, where the first number of a part would be 0. Two turns close, and each has its batch.
func TestTurnsInTheFirstSecondOfTheEpochHaveTheirBatches(t *testing.T) {
	p := newPlay(t)
	p.now = time.Unix(0, 0).UTC()
	for _, turn := range []string{"t1", "t2"} {
		p.handle(eventRecord(t, turn, 1, startEvent("m")))
		require.Len(t, p.handle(terminalRecord(t, turn, 2, okResult("end_turn"))).batches(), 1, turn)
	}
}

func TestDeletedPartZeroDropsNoOutput(t *testing.T) {
	var es machine.Effects
	machine.Emit(&es, quay.BatchMessages, "s", "id", topics.BatchMessage{})
	es.SetPart(1, []byte("a"))
	es.DeletePart(0)
	es.DeletePart(1)
	require.Len(t, es.List(), 3, "the output and two deletions")
}
