package responder_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/responder"
)

// output is a record of message-output.
func output(id string) processors.Inbound {
	r := processors.Inbound{Topic: "pilot-message-output", Key: []byte("s"), Value: []byte("{}")}
	if id != "" {
		r.Headers = []processors.Header{{Name: "turntable.id", Value: []byte(id)}}
	}
	return r
}

func TestOutputEndsTheWorkOfItsTurnOnly(t *testing.T) {
	turns := responder.NewEndedTurns()
	step, stopStep := turns.Watch(t.Context(), "turn-a/2/enriched/0")
	defer stopStep()
	call, stopCall := turns.Watch(t.Context(), "turn-a/1/tool-use/1")
	defer stopCall()
	other, stopOther := turns.Watch(t.Context(), "turn-b/1/enriched/0")
	defer stopOther()
	foreign, stopForeign := turns.Watch(t.Context(), "")
	defer stopForeign()

	turns.Observe(output(""))
	turns.Observe(output("turn-a"))
	require.NoError(t, step.Err(), "these records name no turn")
	turns.Observe(output("turn-a/2/answer/0"))
	require.ErrorIs(t, context.Cause(step), responder.ErrTurnEnded)
	require.ErrorIs(t, context.Cause(call), responder.ErrTurnEnded)
	require.NoError(t, other.Err())
	require.NoError(t, foreign.Err())
}

func TestWorkOfAnEndedTurnDoesNotStart(t *testing.T) {
	turns := responder.NewEndedTurns()
	turns.Observe(output("turn-a/1/answer/0"))
	step, stop := turns.Watch(t.Context(), "turn-a/1/enriched/0")
	defer stop()
	require.ErrorIs(t, context.Cause(step), responder.ErrTurnEnded)
}

func TestWatchEndsWithItsContext(t *testing.T) {
	turns := responder.NewEndedTurns()
	ctx, cancel := context.WithCancel(t.Context())
	step, stop := turns.Watch(ctx, "turn-a/1/enriched/0")
	defer stop()
	cancel()
	require.ErrorIs(t, context.Cause(step), context.Canceled)
}
