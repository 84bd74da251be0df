package tools_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/processors/worker"
)

// outputOf is the record of message-output that ends a turn.
func outputOf(turn string) processors.Inbound {
	return processors.Inbound{
		Topic: "pilot-message-output", Key: []byte("s"), Value: []byte("{}"),
		Headers: []processors.Header{{Name: "turntable.id", Value: []byte(turn + "/1/answer/0")}},
	}
}

func TestEndOfTheTurnEndsRunningAndWaitingCalls(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	var cause error
	b := newBench(t, map[string]tools.Func{"clock": func(ctx context.Context, _ tools.Call) (any, error) {
		close(started)
		<-ctx.Done()
		cause = context.Cause(ctx)
		close(release)
		return nil, ctx.Err()
	}}, tools.Config{Config: worker.Config{Concurrency: 1}})
	handled := make(chan error, 2)
	go func() { handled <- b.worker.Handle(t.Context(), call("t1", "clock", "{}")) }()
	<-started
	go func() { handled <- b.worker.Handle(t.Context(), call("t2", "clock", "{}")) }() // waits for the place of t1
	b.worker.HandleOutput(outputOf("turn"))
	require.NoError(t, <-handled)
	require.NoError(t, <-handled)
	<-release
	require.ErrorIs(t, cause, tools.ErrTurnEnded)
	require.Empty(t, b.paper.lines(), "nobody waits for the results")
}

func TestCallOfAnEndedTurnIsSkipped(t *testing.T) {
	b := newBench(t, map[string]tools.Func{"clock": func(context.Context, tools.Call) (any, error) {
		t.Error("the tool is called for a turn that has ended")
		return nil, nil
	}}, tools.Config{})
	b.worker.HandleOutput(outputOf("turn"))
	b.handle(call("t1", "clock", "{}"))
	require.Empty(t, b.paper.lines())
}
