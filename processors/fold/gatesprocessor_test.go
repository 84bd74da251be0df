package fold_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/foldrow"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

func TestPausedTurnWaitsForItsOutcome(t *testing.T) {
	b := newBench(t, fold.Config{Gates: true, GateTimeout: time.Hour})
	requests := processortest.Out(b.Driver, b.topics.GateRequests)
	outcomes := processortest.In(b.Driver, b.topics.GateOutcomes)
	table := processortest.Table(b.Driver, b.topics.FoldGroup(), foldrow.Table.Codec())

	b.say("t", "Paying.")
	b.event("t", 2, `{"type":"interaction_request","data":{"id":"r1","kind":"user_approval","payload":{"toolCall":{"name":"pay","input":{"eur":1}}}}}`)
	b.event("t", 3, `{"type":"done","data":{"stopReason":"paused"}}`)
	b.end("t", 4, "paused")
	request := requests.Next()
	require.Equal(t, "s", request.Key)
	require.Regexp(t, "^[0-9a-f]{32}/0/gate-request/0$", request.ID())
	require.Equal(t, topics.GateOrigin{Agent: "quay", Via: "fold"}, request.Value.Origin)
	require.Equal(t, noon.Add(time.Hour).UnixMilli(), request.Value.ExpiresMS)
	b.Advance(time.Hour)
	require.NoError(t, b.Replay())
	require.Empty(t, b.batches.Drain())
	row, _ := table.Get("s")
	text, err := fold.Describe(row)
	require.NoError(t, err)
	require.Contains(t, text, "waits for 1 decisions")

	call := folder.GateCall("t", 1, 0)
	outcomes.Pipe("s", topics.GateOutcome{
		GateID: request.Value.GateID, SessionID: "s", TurnID: "t", CallID: call, Status: topics.GateTimedOut, Cause: topics.CauseDeadline,
	})
	outcomes.PipeRaw("s", nil)
	outcomes.PipeRaw("s", []byte(`{"gate_id":"g","status":"unknown"}`))
	require.Len(t, b.letters.Drain(), 2)
	b.event("t", 5, `{"type":"message","data":{"text":"No one answered."}}`)
	b.end("t", 6, "end_turn")
	batch := b.batches.Next().Value
	require.Equal(t, topics.BatchComplete, batch.State)
	require.Contains(t, batch.Messages.String(), "Paying.")
	require.Contains(t, batch.Messages.String(), "No one answered.")
	require.Empty(t, requests.Drain())
	require.NoError(t, b.Replay())
	b.Advance(25 * time.Hour)
	require.Empty(t, table.Keys())
}

func TestPurgeWithdrawsGates(t *testing.T) {
	b := newBench(t, fold.Config{Gates: true})
	requests := processortest.Out(b.Driver, b.topics.GateRequests)
	b.event("t", 1, `{"type":"interaction_request","data":{"id":"r1"}}`)
	b.event("t", 2, `{"type":"done","data":{"stopReason":"paused"}}`)
	opened := requests.Next()
	b.controls.Pipe("s", topics.Control{Action: topics.ActionPurge})
	withdrawn := requests.Next()
	require.Equal(t, opened.Value.GateID, withdrawn.Value.GateID)
	require.Equal(t, topics.CausePurged, withdrawn.Value.Withdrawn)
	require.Equal(t, topics.BatchCancelled, b.batches.Next().Value.State)
}

func TestInvalidGateTimeoutFailsGraph(t *testing.T) {
	for _, d := range []time.Duration{-1, time.Microsecond, 31 * 24 * time.Hour} {
		_, err := fold.Graph("quay", fold.Config{Gates: true, GateTimeout: d})
		require.ErrorIs(t, err, fold.ErrConfig)
		require.ErrorContains(t, err, "GateTimeout")
	}
}
