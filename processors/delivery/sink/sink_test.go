package sink_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

func newSink(t *testing.T, to *paper, f sink.Func, c sink.Config) *sink.Sink {
	t.Helper()
	c.Transports, c.Clock, c.Name = map[string]sink.Transport{topics.KindHTTP: f}, clock.NewFake(noon), "sink-1"
	s, err := sink.New("pilot", to, c)
	require.NoError(t, err)
	return s
}

func TestReasonsAreBounded(t *testing.T) {
	to := &paper{}
	long := "\xff" + strings.Repeat("ü", 1<<20)
	s := newSink(t, to, func(context.Context, topics.Delivery) error { return &sink.Failure{Reason: long} }, sink.Config{})
	require.NoError(t, s.Handle(t.Context(), inbound(t, attempt("harbor"))))
	reason := *to.all()[0].Reason
	require.LessOrEqual(t, len(reason), 256)
	require.True(t, strings.HasPrefix(reason, "?ü") && strings.HasSuffix(reason, "ü"))
}

func TestEveryAttemptHasAReceipt(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want topics.Receipt
	}{
		"delivered": {nil, topics.Receipt{Outcome: topics.OutcomeDelivered}},
		"can be retried": {
			&sink.Failure{Reason: "status 503", Status: 503, RetryAfter: time.Second},
			topics.Receipt{Outcome: topics.OutcomeFailed, Status: 503, RetryAfterMS: 1000},
		},
		"final": {
			&sink.Failure{Reason: "status 404", Status: 404, Final: true},
			topics.Receipt{Outcome: topics.OutcomeRefused, Status: 404},
		},
		"wrapped": {
			fmt.Errorf("x: %w", &sink.Failure{Reason: "gone", Final: true}),
			topics.Receipt{Outcome: topics.OutcomeRefused},
		},
		"suppressed": {
			&sink.Failure{Reason: "nothing to send", Suppressed: true},
			topics.Receipt{Outcome: topics.OutcomeSuppressed},
		},
		"other":   {errors.New("s3cret"), topics.Receipt{Outcome: topics.OutcomeFailed}},
		"timeout": {context.DeadlineExceeded, topics.Receipt{Outcome: topics.OutcomeFailed}},
	} {
		t.Run(name, func(t *testing.T) {
			to := &paper{}
			s := newSink(t, to, func(context.Context, topics.Delivery) error { return c.err }, sink.Config{})
			require.NoError(t, s.Handle(t.Context(), inbound(t, attempt("harbor"))))
			require.Len(t, to.all(), 1)
			r := to.all()[0]
			require.Equal(t, c.want.Outcome, r.Outcome)
			require.Equal(t, c.want.Status, r.Status)
			require.Equal(t, c.want.RetryAfterMS, r.RetryAfterMS)
			require.Equal(t, "d-1", r.DeliveryID)
			require.EqualValues(t, 1, r.Attempt)
			require.Equal(t, "sink-1", *r.Sink)
			require.Zero(t, r.InFlight)
			if r.Reason != nil {
				require.NotContains(t, *r.Reason, "s3cret")
			}
		})
	}
}

func TestPanicOfATransportIsAFailure(t *testing.T) {
	to := &paper{}
	s := newSink(t, to, func(context.Context, topics.Delivery) error { panic("s3cret") }, sink.Config{})
	require.NoError(t, s.Handle(t.Context(), inbound(t, attempt("harbor"))))
	require.Equal(t, "transport panicked", *to.all()[0].Reason)
}

func TestDeliveryOfAKindWithoutTransportIsRefused(t *testing.T) {
	to := &paper{}
	s := exchanging(t, to, sink.Log(zap.NewNop()), sink.Config{})
	pigeon := attempt("x", func(d *topics.Delivery) { d.Route.Kind = "pigeon" })
	require.NoError(t, s.Handle(t.Context(), inbound(t, pigeon)))
	require.NoError(t, s.Handle(t.Context(), inbound(t, attempt("x"))))
	require.Equal(t, topics.OutcomeRefused, to.all()[0].Outcome)
	require.Equal(t, delivery.ReasonUnknownService, *to.all()[0].Reason)
	require.Equal(t, topics.OutcomeDelivered, to.all()[1].Outcome)
}

func TestExpiredAndUndecodableDeliveriesAreSkipped(t *testing.T) {
	to := &paper{}
	s := newSink(t, to, func(context.Context, topics.Delivery) error { t.Error("called"); return nil }, sink.Config{})
	late := attempt("harbor", func(d *topics.Delivery) { d.LeaseUntilMS = noon.UnixMilli() })
	require.NoError(t, s.Handle(t.Context(), inbound(t, late)))
	expired := attempt("harbor", func(d *topics.Delivery) { d.ExpiresMS = noon.UnixMilli() - 1 })
	require.NoError(t, s.Handle(t.Context(), inbound(t, expired)))
	require.NoError(t, s.Handle(t.Context(), processors.Inbound{}))
	require.NoError(t, s.Handle(t.Context(), processors.Inbound{Value: []byte("{")}))
	require.Empty(t, to.all())
}

func TestAttemptsBeyondTheRouteLimitAreDeferred(t *testing.T) {
	to, release := &paper{}, make(chan struct{})
	var begun sync.WaitGroup
	s := newSink(t, to, func(context.Context, topics.Delivery) error {
		begun.Done()
		<-release
		return nil
	}, sink.Config{Config: worker.Config{Concurrency: 8}, RouteLimit: 100})
	handle := func(service string) { require.NoError(t, s.Handle(context.Background(), inbound(t, attempt(service)))) }
	var running sync.WaitGroup
	busy := func(service string, n int) {
		begun.Add(n)
		for range n {
			running.Go(func() { handle(service) })
		}
		begun.Wait()
	}
	busy("dead-1", 4) // half of 8
	handle("dead-1")
	require.Equal(t, topics.OutcomeDeferred, to.all()[0].Outcome)
	require.EqualValues(t, 4, to.all()[0].InFlight)
	busy("dead-2", 2)
	handle("dead-2")
	busy("dead-3", 1)
	handle("dead-3")
	require.Len(t, to.all(), 3)
	busy("healthy", 1)
	handle("late")
	require.Equal(t, topics.OutcomeDeferred, to.all()[3].Outcome, "all 8 slots are used")
	close(release)
	running.Wait()
	require.Len(t, to.all(), 12)
}

func TestInterruptedAttemptHasAReceipt(t *testing.T) {
	to := &paper{}
	ctx, cancel := context.WithCancel(t.Context())
	s := newSink(t, to, func(ctx context.Context, _ topics.Delivery) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}, sink.Config{})
	require.NoError(t, s.Handle(ctx, inbound(t, attempt("harbor"))))
	require.Equal(t, delivery.ReasonInterrupted, *to.all()[0].Reason)
	require.Equal(t, topics.OutcomeFailed, to.all()[0].Outcome)
}

// A delivery group that was killed before it wrote its row asks for the attempt again, and may have rejected the first
// receipt.
func TestRepeatedAttemptGetsTheSameReceipt(t *testing.T) {
	for name, result := range map[string]error{
		"delivered": nil, "failed": &sink.Failure{Reason: "status 503", Status: 503},
		"refused": &sink.Failure{Reason: "status 404", Status: 404, Final: true},
	} {
		t.Run(name, func(t *testing.T) {
			to := &paper{}
			s := newSink(t, to, func(context.Context, topics.Delivery) error { return result }, sink.Config{})
			for range 2 {
				require.NoError(t, s.Handle(t.Context(), inbound(t, attempt("harbor"))))
			}
			require.Len(t, to.all(), 2)
			require.Equal(t, to.all()[0], to.all()[1])
		})
	}
}

func TestReceiptIsRetriedUntilTheBrokersAcknowledgeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to, calls := &paper{err: errors.New("away")}, 0
		s := newSink(t, to, func(context.Context, topics.Delivery) error { calls++; return nil }, sink.Config{})
		require.NoError(t, s.Handle(t.Context(), inbound(t, attempt("harbor"))))
		require.Equal(t, 1, calls, "the attempt is not made again")
		require.Len(t, to.all(), 1)

		to.err = processors.ErrPublisherClosed
		require.ErrorIs(t, s.Handle(t.Context(), inbound(t, attempt("harbor"))), processors.ErrPublisherClosed)
	})
}

func TestErrorNamesTheInvalidField(t *testing.T) {
	log := sink.Log(zap.NewNop())
	one := map[string]sink.Transport{"log": log}
	for name, c := range map[string]sink.Config{
		"Transports is empty": {}, "Transports has an empty kind": {Transports: map[string]sink.Transport{"": log}},
		"Concurrency": {Transports: one, Config: worker.Config{Concurrency: -1}}, "RouteLimit": {Transports: one, RouteLimit: -1},
		"ReadAhead": {Transports: one, Config: worker.Config{ReadAhead: -1}}, "Grace": {Transports: one, Config: worker.Config{Grace: -1}},
		"Drop": {Transports: one, Config: worker.Config{Drop: true}},
	} {
		_, err := sink.New("pilot", &paper{}, c)
		require.ErrorIs(t, err, sink.ErrConfig)
		require.ErrorContains(t, err, name)
	}
	_, err := sink.New(" ", &paper{}, sink.Config{Transports: one})
	require.ErrorIs(t, err, sink.ErrConfig)
	_, err = sink.New("pilot", nil, sink.Config{Transports: one})
	require.ErrorContains(t, err, "the publisher is nil")
}

// A redelivery would repeat the attempt, and its receipt would be too large again.
func TestAttemptWhoseReceiptIsTooLargeIsNotRepeated(t *testing.T) {
	to := &paper{err: processors.ErrTooLarge}
	s := newSink(t, to, func(context.Context, topics.Delivery) error { return nil }, sink.Config{})
	require.NoError(t, s.Handle(t.Context(), inbound(t, attempt("harbor"))))
	require.Empty(t, to.all())
}
