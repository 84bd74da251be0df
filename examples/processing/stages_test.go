package main

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStagesStopInOrder(t *testing.T) {
	var stopped []string // written by one goroutine at a time, which the race detector checks
	member := func(name string) func(context.Context) error {
		return func(ctx context.Context) error {
			<-ctx.Done()
			stopped = append(stopped, name)
			return nil
		}
	}
	stages := []stage{{member("doors")}, {}, {member("processors")}, {member("websocket")}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, inOrder(ctx, stages...))
	require.Equal(t, []string{"doors", "processors", "websocket"}, stopped)

	stopped = nil
	broken, late := errors.New("broken"), errors.New("late")
	err := inOrder(t.Context(), stage{member("doors")}, stage{func(context.Context) error { return broken }},
		stage{func(ctx context.Context) error {
			<-ctx.Done()
			stopped = append(stopped, "websocket")
			return late
		}})
	require.ErrorIs(t, err, broken)
	require.ErrorIs(t, err, late)
	require.Equal(t, []string{"doors", "websocket"}, stopped)
}
