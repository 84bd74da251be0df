package think_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// using returns a reply that reports what it used.
func using(text string, tokens int64, cost float64) think.Reply {
	r := think.Say(text)
	r.InputTokens, r.OutputTokens, r.Cost = tokens, 1, &cost
	return r
}

// again is a policy that waits a nanosecond.
var again = think.Config{Config: worker.Config{Clock: clock.System(), Retry: worker.RetryPolicy{Backoff: 1, Jitter: -1, Limit: 3}}}

func TestResponseHasTheCostOfAllCallsOfItsStep(t *testing.T) {
	for name, c := range map[string]struct {
		failed think.Reply
		tokens []int64
		cost   float64
	}{
		"reported":     {using("", 10, 0.25), []int64{17, 2}, 0.75},
		"not reported": {think.Reply{}, []int64{7, 1}, 0.5},
		"no price":     {think.Reply{InputTokens: 10}, []int64{17, 1}, 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			b := newBench(t, func(context.Context, think.Step) (think.Reply, error) {
				if calls++; calls == 1 {
					return c.failed, overloaded
				}
				return using("N4.", 7, 0.5), nil
			}, again)
			r := record(question)
			r.Timestamp = time.Now()
			b.handle(r)
			got := b.response()
			require.Equal(t, c.tokens, []int64{got.ThinkInputTokens, got.ThinkOutputTokens})
			require.InDelta(t, c.cost, *got.ThinkCost, 1e-9)
			require.InDelta(t, 1.5+c.cost, *got.TotalSessionCost, 1e-9)
		})
	}
}

func TestFailureHasTheCostOfItsStep(t *testing.T) {
	for name, c := range map[string]struct {
		model  think.Func
		refuse bool // records over 250 bytes
		want   string
	}{
		"refused": {func(context.Context, think.Step) (think.Reply, error) {
			return using("", 10, 0.25), think.ErrRefused
		}, false, "0.25"},
		"unknown": {func(context.Context, think.Step) (think.Reply, error) {
			return think.Reply{InputTokens: 10}, think.ErrRefused
		}, false, ""},
		"all attempts": {func(context.Context, think.Step) (think.Reply, error) {
			return using("", 10, 0.25), overloaded
		}, false, "0.75"},
		"too large": {func(context.Context, think.Step) (think.Reply, error) {
			return using(strings.Repeat("x", 100), 10, 0.25), nil
		}, true, "0.25"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.model, again)
			b.paper.refuse = func(r processors.Outbound) error {
				if c.refuse && len(r.Value) > 250 {
					return processors.ErrTooLarge
				}
				return nil
			}
			r := record(question)
			r.Timestamp = time.Now()
			b.handle(r)
			out, _ := b.failure()
			require.Equal(t, c.want, string(out.Headers[topics.HeaderCost]))
		})
	}
}

// A stop does not lose what an interrupted call has used if the same process gets the step again.
func TestCostOfAnInterruptedCallIsKeptForItsRepeat(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	calls := 0
	b := newBench(t, func(context.Context, think.Step) (think.Reply, error) {
		if calls++; calls == 1 {
			stop()
			return using("", 10, 0.25), errors.New("interrupted")
		}
		return using("N4.", 7, 0.5), nil
	}, think.Config{})
	require.ErrorIs(t, b.worker.Handle(ctx, record(question)), context.Canceled)
	b.handle(repeatOf(record(question)))
	require.InDelta(t, 0.75, *b.response().ThinkCost, 1e-9)
}
