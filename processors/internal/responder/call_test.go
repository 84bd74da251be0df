package responder_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/responder"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

var errConfig = errors.New("test: bad configuration")

type nowhere struct{}

func (nowhere) Publish(context.Context, ...processors.Outbound) error { return nil }

var defaults = responder.Defaults{Invalid: errConfig, Group: "group", Concurrency: 1, Timeout: time.Minute}

func newResponder(t *testing.T) *responder.Responder[string] {
	catalog, err := topics.For("pilot")
	require.NoError(t, err)
	r, err := responder.New[string](catalog, nowhere{}, responder.NewSettings(worker.Config{}, 0, responder.Bounds{}, defaults))
	require.NoError(t, err)
	return r
}

// outputOf is the record of message-output that ends a turn.
func outputOf(turn string) processors.Inbound {
	return processors.Inbound{Headers: []processors.Header{{Name: topics.HeaderID, Value: []byte(turn + "/0/output/0")}}}
}

func TestEndOfACallIsThatOfItsContext(t *testing.T) {
	wait := func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	type running struct {
		*responder.Responder[string]
		stop func()
	}
	for name, c := range map[string]struct {
		left time.Duration
		call func(ctx context.Context, r running) error
		want responder.End
	}{
		"returned": {time.Minute, func(context.Context, running) error { return nil }, responder.Returned},
		"failed":   {time.Minute, func(context.Context, running) error { return errors.New("x") }, responder.Failed},
		"late":     {time.Minute, func(ctx context.Context, _ running) error { return wait(ctx) }, responder.Late},
		"not made": {0, nil, responder.Late},
		"returned after the deadline": {time.Minute, func(ctx context.Context, _ running) error {
			_ = wait(ctx)
			return nil
		}, responder.Returned},
		"stopped": {time.Minute, func(ctx context.Context, r running) error {
			r.stop()
			return wait(ctx)
		}, responder.Stopped},
		"turn ended": {time.Minute, func(ctx context.Context, r running) error {
			r.Observe(outputOf("turn"))
			err := wait(ctx)
			require.ErrorIs(t, err, responder.ErrTurnEnded)
			return err
		}, responder.TurnEnded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newResponder(t)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				end := r.Call(ctx, "turn/0/enriched/0", time.Now().Add(c.left), func(ctx context.Context) error {
					return c.call(ctx, running{r, stop})
				})
				require.Equal(t, c.want, end)
			})
		})
	}
}

func TestCallOfAnEndedTurnIsSkippedAlsoAfterItsDeadline(t *testing.T) {
	r := newResponder(t)
	r.Observe(outputOf("turn"))
	for _, left := range []time.Duration{time.Minute, -time.Minute} {
		end := r.Call(t.Context(), "turn/0/enriched/0", time.Now().Add(left), nil)
		require.Equal(t, responder.Skipped, end)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.Equal(t, responder.Stopped, r.Call(ctx, "turn/0/enriched/0", time.Now(), nil))
}

func TestInvalidSettingsAreErrorsOfTheirPackage(t *testing.T) {
	catalog, err := topics.For("pilot")
	require.NoError(t, err)
	s := responder.NewSettings(worker.Config{Concurrency: -1}, -1, responder.Bounds{Count: -1}, defaults)
	_, err = responder.New[string](catalog, nil, s)
	require.ErrorIs(t, err, errConfig)
	for _, field := range []string{"Concurrency is -1", "Timeout is -1ns", "RememberCount is -1", "the publisher is nil"} {
		require.ErrorContains(t, err, field)
	}
}
