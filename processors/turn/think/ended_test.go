package think_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/worker"
)

// outputOf is the record of message-output that ends a turn.
func outputOf(turn string) processors.Inbound {
	return processors.Inbound{
		Topic: "pilot-message-output", Key: []byte("s"), Value: []byte("{}"),
		Headers: []processors.Header{{Name: "turntable.id", Value: []byte(turn + "/1/answer/0")}},
	}
}

func TestEndOfTheTurnEndsTheRunningModelCall(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	started := make(chan struct{})
	var cause error
	b := newBench(t, func(ctx context.Context, _ think.Step) (think.Reply, error) {
		close(started)
		<-ctx.Done()
		cause = context.Cause(ctx)
		cost := 0.25
		return think.Reply{InputTokens: 7, OutputTokens: 3, Cost: &cost}, ctx.Err()
	}, think.Config{Config: worker.Config{Logger: zap.New(core)}})
	handled := make(chan error, 1)
	go func() { handled <- b.worker.Handle(t.Context(), record(question)) }()
	<-started
	b.worker.HandleOutput(outputOf("another"))
	b.worker.HandleOutput(outputOf("turn"))
	require.NoError(t, <-handled, "the step is settled")
	require.ErrorIs(t, cause, think.ErrTurnEnded)
	require.Empty(t, b.paper.all(), "nobody waits for a response or a failure")
	entry := logs.FilterMessage("model call cancelled: its turn has ended").All()
	require.Len(t, entry, 1)
	require.Equal(t, map[string]any{
		"agent": "pilot", "partition": int32(2), "offset": int64(7), "input_tokens": int64(7), "output_tokens": int64(3), "cost": 0.25,
	}, entry[0].ContextMap())
}

func TestStepOfAnEndedTurnIsSkipped(t *testing.T) {
	b := newBench(t, func(context.Context, think.Step) (think.Reply, error) {
		t.Error("the model is called for a turn that has ended")
		return think.Reply{}, nil
	}, think.Config{})
	b.worker.HandleOutput(outputOf("turn"))
	b.handle(record(question))
	b.handle(repeatOf(record(question)))
	require.Empty(t, b.paper.all())
}

func TestReplyThatArrivesAsItsTurnEndsIsPublished(t *testing.T) {
	var b *bench
	b = newBench(t, func(context.Context, think.Step) (think.Reply, error) {
		b.worker.HandleOutput(outputOf("turn"))
		return think.Say("N4."), nil
	}, think.Config{})
	b.handle(record(question))
	require.Len(t, b.paper.all(), 1, "the model was paid, and the turn decides what becomes of its reply")
}

func TestStoppedWorkerReturnsAnErrorAlthoughTheTurnIsOpen(t *testing.T) {
	b := newBench(t, func(ctx context.Context, _ think.Step) (think.Reply, error) {
		<-ctx.Done()
		return think.Reply{}, ctx.Err()
	}, think.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, b.worker.Handle(ctx, record(question)), context.DeadlineExceeded)
	require.Empty(t, b.paper.all())
}
