package think_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

var (
	errBadRequest = &think.ProviderError{Provider: "openai", Status: 400}
	errOverloaded = &think.ProviderError{Provider: "openai", Status: 503}
	overloaded    = &think.Unavailable{Err: errOverloaded}
	steady        = worker.RetryPolicy{Backoff: time.Second, Jitter: -1, Limit: 3}
)

// A worker calls the model again after a failure that may pass, after the wait of the policy or the longer one that the
// provider asks for, and never beyond the deadline.
func TestFailedModelCallsAreMadeAgain(t *testing.T) {
	later := func(d time.Duration) error { return &think.Unavailable{After: d, RateLimit: true, Err: errOverloaded} }
	custom := steady
	custom.Retryable = func(err error) bool { return errors.Is(err, errBadRequest) }
	for name, c := range map[string]struct {
		fail    []error // of the calls, in order; then the model answers
		policy  worker.RetryPolicy
		timeout time.Duration
		waits   []time.Duration
		failure string // the reason; "" for a response
	}{
		"unavailable":         {fail: []error{overloaded, overloaded}, waits: []time.Duration{time.Second, 2 * time.Second}},
		"asks to wait":        {fail: []error{later(time.Minute)}, waits: []time.Duration{time.Minute}},
		"asks to wait little": {fail: []error{later(time.Millisecond)}, waits: []time.Duration{time.Second}},
		"limit": {
			fail:  []error{overloaded, overloaded, overloaded, overloaded},
			waits: []time.Duration{time.Second, 2 * time.Second}, failure: "openai: status 503",
		},
		"bad request":     {fail: []error{errBadRequest}, failure: "openai: status 400"},
		"other error":     {fail: []error{errors.New("no")}, failure: "no"},
		"too late":        {fail: []error{later(time.Hour)}, failure: "openai: status 503; retry after 1h0m0s"},
		"own policy":      {fail: []error{errBadRequest}, policy: custom, waits: []time.Duration{time.Second}},
		"own policy, not": {fail: []error{overloaded}, policy: custom, failure: "openai: status 503"},
		"before the deadline": {
			fail: []error{overloaded, overloaded}, timeout: 3 * time.Second,
			waits: []time.Duration{time.Second}, failure: "openai: status 503",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.policy.Limit == 0 {
				c.policy = steady
			}
			calls := make(chan time.Time, 10)
			n := 0
			var b *bench
			b = newBench(t, func(_ context.Context, s think.Step) (think.Reply, error) {
				calls <- b.clock.Now()
				n++
				if n > len(c.fail) {
					return think.Say("N4."), nil
				}
				err := c.fail[n-1]
				require.Equal(t, n <= len(c.waits), s.Retried(err))
				return think.Reply{}, err
			}, think.Config{Config: worker.Config{Retry: c.policy}, Timeout: c.timeout})
			handled := make(chan error, 1)
			go func() { handled <- b.worker.Handle(t.Context(), record(question)) }()
			at := <-calls
			for _, wait := range c.waits {
				require.Never(t, func() bool { return len(handled) > 0 }, 5*time.Millisecond, time.Millisecond)
				var next time.Time
				require.Eventually(t, func() bool {
					b.clock.Advance(wait / 10)
					select {
					case next = <-calls:
						return true
					default:
						return false
					}
				}, time.Minute, time.Millisecond)
				require.GreaterOrEqual(t, next.Sub(at), wait)
				at = next
			}
			require.NoError(t, <-handled)
			require.Empty(t, calls)
			if c.failure == "" {
				b.response()
				return
			}
			_, reason := b.failure()
			require.Equal(t, c.failure, reason)
		})
	}
}

func TestStopEndsTheWaitForTheNextModelCall(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	b := newBench(t, func(context.Context, think.Step) (think.Reply, error) {
		stop()
		return think.Reply{}, overloaded
	}, think.Config{})
	require.ErrorIs(t, b.worker.Handle(ctx, record(question)), context.Canceled)
	require.Empty(t, b.paper.all())
}

func TestInvalidRetryPolicyIsRejected(t *testing.T) {
	_, err := think.New("pilot", new(paper), saying("x"), think.Config{Config: worker.Config{Retry: worker.RetryPolicy{Limit: -1}}})
	require.ErrorIs(t, err, think.ErrConfig)
	require.ErrorContains(t, err, "Retry")
}

// asked starts a broker with the topics of a worker and one step, and returns a reader of what is written.
func asked(t *testing.T, opts ...kgo.Opt) (brokers []string, to processors.Publisher, client *kgo.Client) {
	t.Helper()
	b, err := embedded.Start(embedded.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	client, err = kgo.NewClient(append(opts, kgo.SeedBrokers(b.Addrs()...))...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	_, err = kadm.NewClient(client).CreateTopics(t.Context(), 3, 1, nil, "pilot-enriched-message-input",
		"pilot-think-request-response", "pilot-think-dlq", "pilot-message-output", "pilot-agent-events")
	require.NoError(t, err)
	publisher, err := processors.NewPublisher(b.Addrs())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, publisher.Close()) })
	require.NoError(t, publisher.Publish(t.Context(), processors.Outbound{
		Topic: "pilot-enriched-message-input", Key: "s", Value: []byte(inTurn),
		Headers: goka.Headers{"turntable.id": []byte("turn/1/enriched/0")},
	}))
	return b.Addrs(), publisher, client
}

// Calls that earlier processes made count: a worker that stops during the wait does not start the count again.
func TestModelCallsOfEarlierProcessesCount(t *testing.T) {
	for name, mode := range map[string]worker.Mode{"share group": worker.ShareGroup, "consumer group": worker.ConsumerGroup} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brokers, to, client := asked(t, kgo.ConsumeTopics("pilot-think-dlq"))
			var calls atomic.Int64
			failing := counted(&calls, func(context.Context, think.Step) (think.Reply, error) { return think.Reply{}, overloaded })
			start := func(backoff time.Duration) func() {
				return runWorker(t, brokers, to, failing, think.Config{
					Config: worker.Config{Grace: time.Millisecond, Mode: mode, Retry: worker.RetryPolicy{Backoff: backoff, MaxBackoff: time.Hour, Limit: 3}},
				})
			}
			for n := range 2 { // each process ends in its wait
				stop := start(time.Minute)
				require.Eventually(t, func() bool { return calls.Load() == int64(n+1) }, time.Minute, time.Millisecond)
				stop()
			}
			start(time.Millisecond)
			records := client.PollFetches(t.Context()).Records()
			require.Len(t, records, 1)
			for _, h := range records[0].Headers {
				if h.Key == topics.HeaderErrorReason {
					require.Equal(t, "openai: status 503", string(h.Value))
				}
			}
			require.EqualValues(t, 3, calls.Load())
		})
	}
}

// Each call of the model is an attempt at the step, and the response names the one that counts: a reader drops the others.
func TestResponseOfAModelThatIsCalledAgainNamesTheEventsOfTheLastCall(t *testing.T) {
	brokers, to, client := asked(t, kgo.ConsumeTopics("pilot-agent-events", "pilot-think-request-response"))
	var calls atomic.Int64
	model, err := think.Stream("pilot", to, think.StreamFunc(func(context.Context, think.Step) iter.Seq2[think.Delta, error] {
		return func(yield func(think.Delta, error) bool) {
			if !yield(think.Delta{Text: "Berth "}, nil) {
				return
			}
			if calls.Add(1) == 1 {
				yield(think.Delta{}, overloaded)
				return
			}
			yield(think.Delta{Text: "N4."}, nil)
		}
	}))
	require.NoError(t, err)
	runWorker(t, brokers, to, model.Think, think.Config{
		Config: worker.Config{Retry: worker.RetryPolicy{Backoff: time.Millisecond, Limit: 2}},
	})

	catalog, err := topics.For("pilot")
	require.NoError(t, err)
	texts := map[int64]string{} // by attempt
	var answered topics.AgentAttempt
	for answered.Attempt == 0 {
		for _, r := range client.PollFetches(t.Context()).Records() {
			if r.Topic != catalog.AgentEvents.Name() {
				for _, h := range r.Headers {
					if h.Key == topics.HeaderEvents {
						answered, _, _ = topics.Events(h.Value)
					}
				}
				continue
			}
			event := catalog.AgentEvents.Codec().Unmarshal(r.Value)
			require.NoError(t, event.Err)
			require.Nil(t, event.Value.Result, "the turn ends the stream")
			texts[event.Value.Attempt] += string(event.Value.Event)
		}
	}
	require.EqualValues(t, 2, calls.Load())
	require.Contains(t, texts[answered.Attempt], "N4.")
	for attempt, text := range texts {
		require.Equal(t, attempt != answered.Attempt, !strings.Contains(text, "N4."))
	}
}
