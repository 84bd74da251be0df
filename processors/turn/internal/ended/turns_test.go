package ended_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/embedded"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/internal/ended"
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
	turns := ended.New()
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
	require.ErrorIs(t, context.Cause(step), ended.ErrTurn)
	require.ErrorIs(t, context.Cause(call), ended.ErrTurn)
	require.NoError(t, other.Err())
	require.NoError(t, foreign.Err())
}

func TestWorkOfAnEndedTurnDoesNotStart(t *testing.T) {
	turns := ended.New()
	turns.Observe(output("turn-a/1/answer/0"))
	step, stop := turns.Watch(t.Context(), "turn-a/1/enriched/0")
	defer stop()
	require.ErrorIs(t, context.Cause(step), ended.ErrTurn)
}

func TestWatchEndsWithItsContext(t *testing.T) {
	turns := ended.New()
	ctx, cancel := context.WithCancel(t.Context())
	step, stop := turns.Watch(ctx, "turn-a/1/enriched/0")
	defer stop()
	cancel()
	require.ErrorIs(t, context.Cause(step), context.Canceled)
}

func TestFollowObservesTheOutputsOfABroker(t *testing.T) {
	b, err := embedded.Start()
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...))
	require.NoError(t, err)
	defer client.Close()
	_, err = kadm.NewClient(client).CreateTopics(t.Context(), 3, 1, nil, "pilot-message-output")
	require.NoError(t, err)

	turns := ended.New()
	stopFollow, err := turns.Follow(b.Addrs(), "pilot-message-output", nil)
	require.NoError(t, err)
	defer stopFollow()
	step, stop := turns.Watch(t.Context(), "turn-a/1/enriched/0")
	defer stop()
	require.Eventually(t, func() bool { // Follow does not say when it has reached the end of the topic
		r := &kgo.Record{
			Topic: "pilot-message-output", Key: []byte("s"), Value: []byte("{}"),
			Headers: []kgo.RecordHeader{{Key: "turntable.id", Value: []byte("turn-a/1/answer/0")}},
		}
		require.NoError(t, client.ProduceSync(t.Context(), r).FirstErr())
		return step.Err() != nil
	}, time.Minute, 20*time.Millisecond)
	require.ErrorIs(t, context.Cause(step), ended.ErrTurn)
}

func TestFollowReturnsAnErrorForBadOptions(t *testing.T) {
	_, err := ended.New().Follow(nil, "pilot-message-output", nil)
	require.ErrorIs(t, err, processors.ErrConfig)
}
