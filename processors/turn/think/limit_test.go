package think_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/worker"
)

// stepOf returns the record of a session's step, whose message is text.
func stepOf(session, text string) processors.Inbound {
	r := record(`{"history":[],"latest_input":{"role":"user","content":"` + text + `"}}`)
	r.Key = []byte(session)
	r.Headers = []processors.Header{{Name: "turntable.id", Value: []byte("turn/" + session + "/enriched/0")}}
	return r
}

// textOf is the model's name in tests: the content of the step's message.
func textOf(s think.Step) string { return strings.Trim(string(s.Input().Content), `"`) }

// handling handles a record in a goroutine.
func (b *bench) handling(r processors.Inbound) <-chan error {
	done := make(chan error, 1)
	go func() { done <- b.worker.Handle(b.t.Context(), r) }()
	return done
}

func TestModelWhoseProviderLimitsTheRateIsNotCalledAgainBeforeItsTime(t *testing.T) {
	for name, c := range map[string]struct {
		err  think.Unavailable
		wait time.Duration
	}{
		"rate limit":                  {think.Unavailable{After: time.Minute, RateLimit: true, Err: think.ErrUnreachable}, time.Minute},
		"rate limit without a time":   {think.Unavailable{RateLimit: true, Err: think.ErrUnreachable}, time.Second},
		"overloaded, with a time":     {think.Unavailable{After: time.Minute, Err: think.ErrUnreachable}, time.Minute},
		"other failure: is no reason": {think.Unavailable{Err: think.ErrUnreachable}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var limited atomic.Bool
				calls := make(chan string, 10)
				b := newBench(t, func(_ context.Context, s think.Step) (think.Reply, error) {
					calls <- s.SessionID
					if limited.CompareAndSwap(false, true) {
						return think.Reply{}, &c.err
					}
					return think.Say("N4."), nil
				}, think.Config{ModelLimit: think.ModelLimit{Model: textOf}})
				first := b.handling(stepOf("a", "one"))
				require.Equal(t, "a", <-calls)
				synctest.Wait()
				second, other := b.handling(stepOf("b", "one")), b.handling(stepOf("c", "two"))
				if c.wait == 0 {
					require.NoError(t, <-second)
				}
				require.NoError(t, <-other, "other models are called")
				synctest.Wait()
				if c.wait > 0 {
					require.Empty(t, second)
					b.clock.Advance(c.wait - time.Millisecond)
					synctest.Wait()
					require.Empty(t, second)
					b.clock.Advance(time.Millisecond)
					require.NoError(t, <-second)
				}
				b.clock.Advance(time.Hour) // the first step's retry, if it has one
				require.NoError(t, <-first)
			})
		})
	}
}

func TestLimitsOfModelsAndTenantsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		began := make(chan string, 10)
		b := newBench(t, func(_ context.Context, s think.Step) (think.Reply, error) {
			began <- s.SessionID
			<-release
			return think.Say("N4."), nil
		}, think.Config{
			Config: worker.Config{Concurrency: 3, Limiter: worker.NewLimiter()}, ModelLimit: think.ModelLimit{Model: textOf, Concurrency: 1}, Limits: []think.Limit{{Name: "tenant", Concurrency: 2, Key: func(s think.Step) string { return s.SessionID[:1] }}},
		})
		var all []<-chan error
		for i, s := range []struct{ session, model string }{
			{"a1", "one"}, {"a2", "one"}, {"a3", "two"}, {"a4", "three"}, {"b1", "three"}, {"c1", "four"},
		} {
			all = append(all, b.handling(stepOf(s.session, s.model)))
			synctest.Wait()
			require.Len(t, began, []int{1, 1, 2, 2, 3, 3}[i], "%+v", s)
		}
		close(release)
		for _, done := range all {
			require.NoError(t, <-done)
		}
	})
}

func TestTokensPerMinuteCountWhatTheModelUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		b := newBench(t, func(context.Context, think.Step) (think.Reply, error) {
			calls.Add(1)
			return think.Reply{Blocks: []think.Block{{Text: "N4."}}, InputTokens: 90, OutputTokens: 30}, nil
		}, think.Config{ModelLimit: think.ModelLimit{TokensPerMinute: 600, Tokens: func(think.Step) int { return 50 }}})
		b.handle(stepOf("a", "x")) // 100 tokens are there
		second := b.handling(stepOf("b", "x"))
		synctest.Wait()
		b.clock.Advance(2 * time.Second) // 20 tokens less than none, 10 per second
		synctest.Wait()
		require.EqualValues(t, 1, calls.Load())
		b.clock.Advance(time.Second)
		require.NoError(t, <-second)
	})
}

func TestStepThatWaitsForItsLimitsFailsAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, saying("N4."), think.Config{Timeout: 10 * time.Second, ModelLimit: think.ModelLimit{RequestsPerMinute: 1}})
		b.handle(stepOf("a", "x"))
		b.handle(stepOf("b", "x"))
		failure := b.paper.all()[1]
		require.Equal(t, "pilot-think-dlq", failure.Topic)
		require.Contains(t, string(failure.Headers["error.reason"]), "did not admit")
		require.Equal(t, "deadline", string(failure.Headers["turntable.reason"]))
	})
}

func TestModelThatIgnoresItsContextIsReportedAndItsPlaceIsFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		release := make(chan struct{})
		var calls atomic.Int64
		b := newBench(t, func(context.Context, think.Step) (think.Reply, error) {
			if calls.Add(1) == 1 {
				<-release
			}
			return think.Say("N4."), nil
		}, think.Config{Config: worker.Config{Concurrency: 1, Logger: zap.New(core)}, Timeout: 10 * time.Second})
		b.handle(stepOf("a", "x"))
		b.handle(stepOf("b", "x"))
		var written []string
		for _, r := range b.paper.all() {
			written = append(written, fmt.Sprint(r.Topic, " ", r.Key))
		}
		require.Equal(t, []string{"pilot-think-dlq a", "pilot-think-request-response b"}, written)
		synctest.Wait()
		warned := logs.FilterMessageSnippet("ignores the end of its context").All()
		require.Len(t, warned, 1)
		require.Equal(t, "pilot", warned[0].ContextMap()["model"])
		require.Equal(t, "turn/a/enriched/0", warned[0].ContextMap()["step"])
		close(release)
		synctest.Wait()
	})
}

func TestInvalidLimitsAreRejected(t *testing.T) {
	_, err := think.New("pilot", &paper{}, saying("x"), think.Config{
		Limits: []think.Limit{{}}, ModelLimit: think.ModelLimit{Concurrency: -1, Tokens: func(think.Step) int { return 1 }},
	})
	require.ErrorIs(t, err, think.ErrConfig)
	for _, text := range []string{"Limits", "negative", "needs TokensPerMinute"} {
		require.ErrorContains(t, err, text)
	}
}
