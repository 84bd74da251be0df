package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"

	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

// valueOf is the key of limits in tests.
func valueOf(r Record) string { return string(r.Value) }

// delivery returns a delivery of a record.
func delivery(offset int64, key, value string) source.Delivery {
	return source.Delivery{Remaining: -1, Record: processors.Inbound{
		Topic: "in", Offset: offset, Key: []byte(key), Value: []byte(value),
	}}
}

// entered calls Enter in a goroutine.
func entered(ctx context.Context, l *Limiter, session string, limits ...Limit[string]) <-chan func() {
	c := make(chan func(), 1)
	go func() {
		if leave, err := Enter(ctx, l, session, session, limits...); err == nil {
			c <- leave
		}
	}()
	return c
}

// waiting waits until no goroutine of the bubble can continue, and checks that n calls wait.
func waiting(t *testing.T, l *Limiter, n int) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Equal(t, n, l.state.Waiting())
}

func TestCallOfAnotherSessionIsNextHoweverManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter()
		one := Limit[string]{Name: "all", Concurrency: 1}
		first := <-entered(t.Context(), l, "a", one)
		ctx, giveUp := context.WithCancel(t.Context())
		for range 300 {
			entered(ctx, l, "a", one)
		}
		waiting(t, l, 300)
		b := entered(t.Context(), l, "b", one)
		waiting(t, l, 301)
		first()
		first() // has no effect
		(<-b)()
		giveUp()
		waiting(t, l, 0)
	})
}

func TestPausedKeyWaitsAndOtherKeysContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, begun := NewLimiter(), time.Now()
		model := Limit[string]{Name: "model", Key: func(s string) string { return s }}
		l.Pause("model", "one", time.Minute)
		one := entered(t.Context(), l, "one", model)
		waiting(t, l, 1)
		(<-entered(t.Context(), l, "two", model))()
		(<-one)()
		require.Equal(t, time.Minute, time.Since(begun))
	})
}

func TestRateAdmitsCallsWhenTheirUnitsAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, begun := NewLimiter(), time.Now()
		tokens := Limit[string]{Name: "tokens", PerMinute: 60, Burst: 5, Cost: func(string) int { return 10 }}
		(<-entered(t.Context(), l, "a", tokens))() // takes 5 units more than there are
		l.Take("tokens", "", 2)
		b := entered(t.Context(), l, "b", tokens)
		(<-b)()
		require.InDelta(t, 8*time.Second, time.Since(begun), float64(10*time.Millisecond))
		require.GreaterOrEqual(t, time.Since(begun), 8*time.Second)
	})
}

func TestLimitWithAPanickingKeyFailsTheCall(t *testing.T) {
	_, err := Enter(t.Context(), NewLimiter(), "s", "call", Limit[string]{Name: "x", Key: func(string) string { panic("secret") }})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
}

func TestInvalidLimitsAreRejected(t *testing.T) {
	for name, l := range map[string]Limit[Record]{
		"name":     {},
		"negative": {Name: "negative", Concurrency: -1},
		"Burst":    {Name: "x", Burst: 1},
		"Cost":     {Name: "x", Cost: func(Record) int { return 1 }},
	} {
		require.ErrorIs(t, l.Invalid(), ErrConfig, name)
		require.ErrorContains(t, l.Invalid(), name)
	}
	require.NoError(t, Limit[Record]{Name: "x", PerMinute: 1, Burst: 1}.Invalid())
}

// A worker with two slots whose records wait for a key with one place.
func TestRecordThatWaitsForALimitOccupiesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		began := make(chan struct{}, 10)
		done := make(chan string, 10)
		r := newRig(t, func(_ context.Context, r Record) error {
			if string(r.Value) == "hung" {
				began <- struct{}{}
				<-release
			}
			done <- string(r.Value)
			return nil
		}, Config{Concurrency: 2, Limits: []Limit[Record]{{Name: "tool", Key: valueOf, Concurrency: 1}}})
		var verdicts []<-chan source.Verdict
		marks := make(chan bool, 10)
		for i := range 3 {
			d := delivery(int64(i), fmt.Sprint("s-", i), "hung")
			if i == 1 {
				d.Wait = func(waiting bool) { marks <- waiting }
			}
			verdicts = append(verdicts, r.deliver(t.Context(), d))
			if i == 0 { // it has the place before the others ask for it
				<-began
			}
		}
		waiting(t, r.w.config.Limiter, 2)
		require.Equal(t, source.Settled, <-r.deliver(t.Context(), delivery(3, "s-3", "other")))
		require.Equal(t, "other", <-done)
		waits := 0
		for _, c := range r.w.Health().Calls {
			if c.Waiting {
				require.Zero(t, c.Attempt, "the handler was not called")
				waits++
			}
		}
		require.Equal(t, 2, waits)
		close(release)
		for _, v := range verdicts {
			require.Equal(t, source.Settled, <-v)
		}
		require.Equal(t, []bool{true, false}, []bool{<-marks, <-marks})
	})
}

func TestConcurrencyHoldsForRecordsThatHaveWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		began := make(chan struct{}, 10)
		r := newRig(t, func(context.Context, Record) error {
			began <- struct{}{}
			<-release
			return nil
		}, Config{Concurrency: 2, Limits: []Limit[Record]{{Name: "tenant", Key: valueOf, Concurrency: 5}}})
		for i := range 4 {
			r.deliver(t.Context(), delivery(int64(i), "s", "t"))
		}
		waiting(t, r.w.config.Limiter, 2)
		require.Len(t, began, 2)
		close(release)
	})
}

func TestStoppingWorkerReleasesRecordsThatWaitImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		began := make(chan struct{}, 2)
		r := newRig(t, func(context.Context, Record) error {
			began <- struct{}{}
			<-release
			return nil
		}, Config{Grace: time.Hour, Limits: []Limit[Record]{{Name: "tool", Concurrency: 1}}})
		running := r.deliver(t.Context(), delivery(1, "s", ""))
		<-began
		waits := r.deliver(t.Context(), delivery(2, "s", ""))
		waiting(t, r.w.config.Limiter, 1)
		r.cancel()
		require.Equal(t, source.Released, <-waits)
		close(release)
		require.Equal(t, source.Settled, <-running, "a running call continues")
		require.Empty(t, began)
	})
}

func TestBackoffOccupiesNoSlotAndTheRetryNeedsTheLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, failed := time.Now(), make(chan struct{})
		r := newRig(t, func(_ context.Context, r Record) error {
			if string(r.Value) == "fails" && r.Attempts == 0 {
				close(failed)
				return errors.New("broken")
			}
			return nil
		}, Config{
			Concurrency: 1, Retry: RetryPolicy{Backoff: time.Minute, Jitter: -1}, Limits: []Limit[Record]{{Name: "all", Concurrency: 1}},
		})
		fails := r.deliver(t.Context(), delivery(1, "a", "fails"))
		<-failed
		require.Equal(t, source.Settled, <-r.deliver(t.Context(), delivery(2, "b", "works")))
		require.Equal(t, source.Settled, <-fails)
		require.Equal(t, time.Minute, time.Since(begun))
	})
}

func TestHandlerThatWaitsForALimitOfItsOwnOccupiesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter()
		tool := Limit[Record]{Name: "tool", Concurrency: 1}
		leave := <-entered(t.Context(), l, "x", Limit[string]{Name: "tool", Concurrency: 1})
		r := newRig(t, func(ctx context.Context, r Record) error {
			leave, err := Enter(ctx, l, string(r.Key), r, tool)
			if err == nil {
				leave()
			}
			return err
		}, Config{})
		marks := make(chan bool, 2)
		d := delivery(1, "a", "")
		d.Wait = func(waiting bool) { marks <- waiting }
		verdict := r.deliver(t.Context(), d)
		require.True(t, <-marks)
		leave()
		require.False(t, <-marks)
		require.Equal(t, source.Settled, <-verdict)
	})
}

func TestSessionThatHasMostSlotsCrowdsTheWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r := newRig(t, func(context.Context, Record) error { <-release; return nil }, Config{Concurrency: 4})
		for i, key := range []string{"a", "a", "b", "", "", "", "a"} {
			r.deliver(t.Context(), delivery(int64(i), key, ""))
			synctest.Wait()
			require.Len(t, r.w.Health().Calls, i+1)
			require.Equal(t, i == 6, r.w.crowded(), "%d", i)
		}
		close(release)
	})
}
