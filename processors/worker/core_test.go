package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

var quick = RetryPolicy{Backoff: time.Millisecond, Jitter: -1, Limit: 3}

func TestFailureIsRetriedAndThenDeadLettered(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errBroken },
		"panic": func() error { panic("secret") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen []Record
				var buried []Record
				var reason error
				var failures []int
				r := newRig(t, func(_ context.Context, r Record) error {
					seen = append(seen, r)
					return fail()
				}, Config{Retry: quick, DeadLetter: func(_ context.Context, r Record, why error) error {
					buried, reason = append(buried, r), why
					if len(buried) == 1 {
						return errors.New("the broker is down") // is called again
					}
					return nil
				}})
				verdict := <-r.deliver(t.Context(), source.Delivery{
					Remaining: -1, Failed: func(n int) { failures = append(failures, n) },
				})
				require.Equal(t, source.Settled, verdict)
				require.Len(t, seen, 3)
				for i, r := range seen {
					require.Equal(t, []any{i, i > 0, i == 2, 1}, []any{r.Attempts, r.Repeated, r.Last, r.Deliveries})
				}
				require.Equal(t, []int{1, 2, 3}, failures)
				require.Len(t, buried, 2)
				require.Equal(t, 3, buried[1].Attempts)
				var panicked *PanicError
				require.True(t, errors.Is(reason, errBroken) || errors.As(reason, &panicked))
				require.Error(t, r.w.Health().Err)
				logged := fmt.Sprint(r.logs.All())
				require.Contains(t, logged, "in")
				require.NotContains(t, logged, "secret")
			})
		})
	}
}

func TestRecordOfTheBrokersLastDeliveryIsDeadLetteredWithoutACall(t *testing.T) {
	var reason error
	r := newRig(t, func(context.Context, Record) error {
		t.Error("called")
		return nil
	}, Config{DeadLetter: func(_ context.Context, _ Record, why error) error { reason = why; return nil }})
	verdict := <-r.deliver(t.Context(), source.Delivery{Count: 5, Attempts: 4, Remaining: 0, Repeated: true})
	require.Equal(t, source.Settled, verdict)
	require.ErrorIs(t, reason, ErrDeliveries)
}

func TestDroppedRecordIsLogged(t *testing.T) {
	r := newRig(t, func(context.Context, Record) error { return errBroken }, Config{Retry: RetryPolicy{Limit: 1}})
	require.Equal(t, source.Settled, <-r.deliver(t.Context(), source.Delivery{Remaining: -1}))
	require.Equal(t, 1, r.logs.FilterMessageSnippet("record is dropped").Len())
}

func TestStopWaitsForTheGracePeriodAndThenEndsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, cause := make(chan struct{}), make(chan error, 1)
		r := newRig(t, func(ctx context.Context, _ Record) error {
			close(began)
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return ctx.Err()
		}, Config{Grace: time.Minute})
		verdict := r.deliver(t.Context(), source.Delivery{Remaining: -1})
		<-began
		stopped := time.Now()
		r.cancel()
		require.ErrorIs(t, <-cause, ErrStopping)
		require.Equal(t, time.Minute, time.Since(stopped))
		require.Equal(t, source.Released, <-verdict, "an interrupted call is no failure")
		<-r.ended
	})
}

func TestCallThatFinishesInTheGracePeriodIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, release := make(chan struct{}), make(chan struct{})
		r := newRig(t, func(context.Context, Record) error {
			close(began)
			<-release
			return nil
		}, Config{})
		verdict := r.deliver(t.Context(), source.Delivery{Remaining: -1})
		<-began
		r.cancel()
		close(release)
		require.Equal(t, source.Settled, <-verdict)
		<-r.ended
	})
}

func TestStopEndsTheWaitForARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan struct{}, 1)
		r := newRig(t, func(context.Context, Record) error {
			failed <- struct{}{}
			return errBroken
		}, Config{Retry: RetryPolicy{Backoff: time.Hour}, Grace: time.Millisecond})
		verdict := r.deliver(t.Context(), source.Delivery{Remaining: -1})
		<-failed
		r.stop()
		require.Equal(t, source.Released, <-verdict)
	})
}

func TestLostRecordEndsTheContextWithItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, cause := make(chan struct{}), make(chan error, 1)
		r := newRig(t, func(ctx context.Context, _ Record) error {
			close(began)
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return ctx.Err()
		}, Config{})
		ctx, lose := context.WithCancelCause(t.Context())
		verdict := r.deliver(ctx, source.Delivery{Remaining: -1})
		<-began
		lose(fmt.Errorf("%w: moved", ErrLost))
		require.ErrorIs(t, <-cause, ErrLost)
		require.Equal(t, source.Released, <-verdict)
	})
}

func TestHandlerThatIgnoresItsTimeoutIsReportedAndItsSlotIsFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r := newRig(t, func(context.Context, Record) error { <-release; return nil },
			Config{Timeout: time.Millisecond, Retry: RetryPolicy{Limit: 1}})
		require.Equal(t, source.Settled, <-r.deliver(t.Context(), source.Delivery{Remaining: -1}))
		calls := r.w.Health().Calls
		require.Len(t, calls, 1)
		require.Equal(t, "in/3/7 s-1 true", fmt.Sprintf("%s/%d/%d %s %t", calls[0].Topic, calls[0].Partition, calls[0].Offset, calls[0].Key, calls[0].Abandoned))
		logged := r.logs.FilterMessageSnippet("ignores the end of its context").All()
		require.Len(t, logged, 1)
		require.Equal(t, "s-1", logged[0].ContextMap()["key"])
		close(release)
		synctest.Wait()
		require.Empty(t, r.w.Health().Calls)
	})
}

func TestHealthListsTheRunningCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, release := make(chan struct{}), make(chan struct{})
		r := newRig(t, func(context.Context, Record) error { close(began); <-release; return nil }, Config{})
		verdict := r.deliver(t.Context(), source.Delivery{Remaining: -1})
		<-began
		<-time.After(time.Minute)
		h := r.w.Health()
		require.True(t, h.Ready)
		require.Len(t, h.Calls, 1)
		require.Equal(t, []any{int64(7), time.Minute, 1}, []any{h.Calls[0].Offset, h.Calls[0].Age, h.Calls[0].Attempt})
		close(release)
		<-verdict
		require.Empty(t, r.w.Health().Calls)
	})
}

func TestErrorNamesEachInvalidField(t *testing.T) {
	handle := func(context.Context, Record) error { return nil }
	_, err := New(nil, nil, Config{
		Concurrency: -1, Mode: 7, Lock: -1, Handover: -1, ReadAhead: -1, Grace: -1, Timeout: -1, Retry: RetryPolicy{Limit: -1},
		Limits: []Limit[Record]{{}},
	})
	require.ErrorIs(t, err, ErrConfig)
	for _, name := range []string{
		"Group", "topics", "handler", "Concurrency", "Mode", "Lock", "Handover", "ReadAhead", "Grace", "Timeout", "Retry", "DeadLetter", "Limits",
	} {
		require.ErrorContains(t, err, name)
	}
	for want, c := range map[string]Config{
		"Ordered":            {Group: "g", Drop: true, Mode: ShareGroup, Ordered: true},
		"DeadLetter or Drop": {Group: "g"},
		"one of them":        {Group: "g", Drop: true, DeadLetter: func(context.Context, Record, error) error { return nil }},
	} {
		_, err := New([]string{"in"}, handle, c)
		require.ErrorContains(t, err, want)
	}
	w, err := New([]string{"in"}, handle, Config{Group: "g", Drop: true})
	require.NoError(t, err)
	require.ErrorIs(t, w.Run(t.Context(), nil), ErrConfig)
	require.False(t, w.Ready())
}
