package sink

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clip"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/retry"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/topics"
)

// ErrConfig is wrapped by everything that New and Run refuse.
var ErrConfig = errors.New("sink: bad configuration")

// Sink makes attempts and writes their receipts. Its methods are safe for concurrent use.
type Sink struct {
	topics topics.Catalog
	to     delivery.Publisher
	rules  rules
	places *places
}

// New makes a sink of an agent's deliveries. It contacts nobody. The publisher is the caller's; it is used until Run
// has returned.
func New(agent string, to delivery.Publisher, opts ...Option) (*Sink, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	r := rules{
		group: agent + "-delivery-sink", name: processName(), transports: map[string]Transport{},
		concurrency: defaultConcurrency, route: defaultRoute, window: defaultWindow, drain: defaultDrain,
		clock: clock.System(), logger: zap.NewNop(),
	}
	for _, opt := range opts {
		opt(&r)
	}
	if to == nil {
		r.refuse("no publisher")
	}
	if len(r.transports) == 0 {
		r.refuse("no transports")
	}
	if len(r.errs) > 0 {
		return nil, errors.Join(r.errs...)
	}
	return &Sink{topics: catalog, to: to, rules: r, places: newPlaces(r.concurrency, r.route)}, nil
}

// processName tells sinks apart in receipts.
func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "sink"
	}
	return host + "-" + strconv.Itoa(os.Getpid())
}

// Run makes attempts until ctx ends; then those on their way may end (WithDrain), and Run returns nil. Brokers that are
// away are waited for. The options are those of processors.New about connections.
func (s *Sink) Run(ctx context.Context, brokers []string, opts ...processors.Option) error {
	err := processors.Consume(ctx, brokers, processors.Consumption{
		Group: s.rules.group, Topics: []string{s.topics.Deliveries.Name()}, Handle: s.Handle,
		Concurrency: s.rules.concurrency + deferring, Window: s.rules.window, Drain: s.rules.drain,
	}, append([]processors.Option{processors.WithLogger(s.rules.logger)}, opts...)...)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

// farewell is how long an interrupted attempt may take to write its receipt: less than its consumer waits for it.
const farewell = 700 * time.Millisecond

// Handle handles one record of deliveries, for whoever has a consumer of his own. It returns nil when the record is
// done: the receipt of its attempt is acknowledged, or there is nothing to attempt. After an error the record must
// come again.
func (s *Sink) Handle(ctx context.Context, r processors.Inbound) error {
	if r.Value == nil {
		return nil
	}
	in := s.topics.Deliveries.Codec().Unmarshal(r.Value)
	if in.Err != nil {
		// Nobody but the delivery group writes here. Its lease ends without a receipt.
		s.rules.logger.Warn("record of deliveries cannot be read", zap.Int32("partition", r.Partition),
			zap.Int64("offset", r.Offset), zap.Error(in.Err))
		return nil
	}
	d := in.Value
	left := time.UnixMilli(min(d.LeaseUntilMS, d.ExpiresMS)).Sub(s.rules.clock.Now())
	if left <= 0 {
		return nil // another attempt takes its place
	}
	if !s.places.take(d.Route.Key()) {
		return s.report(ctx, r, d, topics.Receipt{Outcome: topics.OutcomeDeferred, Reason: text(delivery.ReasonBusy)})
	}
	receipt := s.attempt(ctx, d, left)
	s.places.free(d.Route.Key())
	if ctx.Err() != nil {
		inner, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		defer cancel()
		ctx = inner
	}
	return s.report(ctx, r, d, receipt)
}

// attempt makes one attempt, within the lease.
func (s *Sink) attempt(ctx context.Context, d topics.Delivery, left time.Duration) topics.Receipt {
	t, ok := s.rules.transports[d.Route.Kind]
	if !ok {
		return topics.Receipt{Outcome: topics.OutcomeRefused, Reason: text(delivery.ReasonUnknownService)}
	}
	inner, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	err := deliver(inner, t, d)
	var f *Failure
	switch {
	case err == nil:
		return topics.Receipt{Outcome: topics.OutcomeDelivered}
	case ctx.Err() != nil: // what the transport says to that is not the receiver's
		return topics.Receipt{Outcome: topics.OutcomeFailed, Reason: text(delivery.ReasonInterrupted)}
	case !errors.As(err, &f):
		f = &Failure{Reason: "failed"}
		if errors.Is(err, context.DeadlineExceeded) {
			f.Reason = "timeout"
		}
	}
	receipt := topics.Receipt{
		Outcome: topics.OutcomeFailed, Reason: text(clipped(f.Reason)), Status: int64(f.Status), RetryAfterMS: f.RetryAfter.Milliseconds(),
	}
	if f.Final {
		receipt.Outcome = topics.OutcomeRefused
	}
	return receipt
}

// deliver calls the transport. What it panics with may quote a payload and is not repeated.
func deliver(ctx context.Context, t Transport, d topics.Delivery) (err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			err = &Failure{Reason: "transport panicked"}
		}
	}()
	return t.Deliver(ctx, d)
}

// report writes the receipt of an attempt.
func (s *Sink) report(ctx context.Context, r processors.Inbound, d topics.Delivery, receipt topics.Receipt) error {
	receipt.DeliveryID, receipt.SessionID, receipt.Attempt, receipt.Route = d.DeliveryID, d.SessionID, d.Attempt, d.Route
	receipt.Sink, receipt.InFlight = &s.rules.name, int64(s.places.busy(d.Route.Key()))
	receipt.AtMS = s.rules.clock.Now().UnixMilli()
	id := d.DeliveryID + "/receipt/" + strconv.FormatInt(d.Attempt, 10)
	out, err := processors.OutboundOf(s.topics.DeliveryReceipts, string(r.Key), receipt, id)
	if err != nil {
		return err
	}
	// Brokers that are away are waited for: to begin anew would repeat every attempt that is on its way.
	err = retry.Until(ctx, func() error { return s.to.Publish(ctx, out) }, nil,
		processors.ErrTooLarge, processors.ErrPublisherClosed)
	if err != nil {
		return fmt.Errorf("sink: receipt: %w", err)
	}
	return nil
}

// maxReason bounds the reason of a receipt, in bytes: a receipt that is refused for its size would come again for ever.
const maxReason = 256

func clipped(reason string) string { return clip.Text(reason, maxReason) }

func text(s string) *string { return &s }
