package sink

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/retry"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// Sink makes the attempts of an agent's deliveries and writes their receipts. Its methods are safe for concurrent use.
type Sink struct {
	attempts topics.Topic[topics.Delivery]
	receipts topics.Topic[topics.Receipt]
	to       processors.Publisher
	config   Config
	slots    *slots
}

// New returns a sink for an agent's deliveries. It opens no connection. The caller owns the publisher and must not close it
// before Run has returned.
func New(agent string, to processors.Publisher, c Config) (*Sink, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	var check bounds.Check
	c.complete(catalog, &check)
	if to == nil {
		check.Wrong("the publisher", "is nil")
	}
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	s := &Sink{to: to, slots: newSlots(c.Concurrency, c.RouteLimit), config: c}
	s.attempts, s.receipts = catalog.Deliveries, catalog.DeliveryReceipts
	if c.Peers {
		s.attempts, s.receipts = catalog.PeerAttempts, catalog.PeerReceipts
	}
	return s, nil
}

// Run consumes deliveries and makes attempts until ctx ends. Then it waits for attempts in flight (Config.Grace) and returns
// nil. It waits for brokers that are unavailable. opts are the connection options of processors.New; invalid ones return an
// error.
func (s *Sink) Run(ctx context.Context, brokers []string, opts ...processors.Option) error {
	c := s.config.Config
	c.Concurrency += deferring
	c.DeadLetter = s.giveUp
	w, err := worker.New([]string{s.attempts.Name()}, s.HandleRecord, c)
	if err == nil {
		err = w.Run(ctx, brokers, append([]processors.Option{processors.WithLogger(s.config.Logger)}, opts...)...)
	}
	if errors.Is(err, worker.ErrConfig) {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return err
}

// giveUp ends an attempt that was interrupted as often as the broker delivers its record. The delivery group retries it.
func (s *Sink) giveUp(ctx context.Context, r worker.Record, _ error) error {
	in := s.attempts.Codec().Unmarshal(r.Value)
	if in.Err != nil {
		return nil
	}
	return s.report(ctx, r.Inbound, in.Value, interrupted())
}

// receiptTimeout bounds how long the receipt of an interrupted attempt may take. It is shorter than the time for which the
// consumer waits for an interrupted handler.
const receiptTimeout = 700 * time.Millisecond

// Handle is HandleRecord for a record that was not handled before, for programs with a consumer of their own.
func (s *Sink) Handle(ctx context.Context, r processors.Inbound) error {
	return s.HandleRecord(ctx, worker.Record{Inbound: r})
}

// HandleRecord handles one record of the sink's topic. It blocks until the attempt has ended and its receipt is acknowledged,
// and returns nil then, or if there is nothing to attempt. After an error the offset must not be committed and the record
// must be redelivered, with Repeated set.
func (s *Sink) HandleRecord(ctx context.Context, r worker.Record) error {
	if r.Value == nil {
		return nil
	}
	in := s.attempts.Codec().Unmarshal(r.Value)
	if in.Err != nil {
		// Only the group that requests attempts writes this topic. The lease ends without a receipt and the group retries.
		s.config.Logger.Warn("skipping a delivery that cannot be decoded", zap.Int32("partition", r.Partition),
			zap.Int64("offset", r.Offset), zap.Error(in.Err))
		return nil
	}
	d := in.Value
	left := time.UnixMilli(min(d.LeaseUntilMS, d.ExpiresMS)).Sub(s.config.Clock.Now())
	if left <= 0 {
		return nil // the group that requested it has ended this attempt
	}
	if !s.slots.take(d.Route.Key()) {
		receipt := topics.Receipt{Outcome: topics.OutcomeDeferred, Reason: text(delivery.ReasonBusy)}
		if _, ok := s.config.Transports[d.Route.Kind].(Exchanger); ok && r.Repeated {
			receipt = interrupted() // a deferred receipt would say that no attempt was made
		}
		return s.report(ctx, r.Inbound, d, receipt)
	}
	receipt := s.attempt(ctx, Attempt{d, r.Repeated}, left)
	s.slots.release(d.Route.Key())
	if ctx.Err() != nil {
		inner, cancel := context.WithTimeout(context.WithoutCancel(ctx), receiptTimeout)
		defer cancel()
		ctx = inner
	}
	return s.report(ctx, r.Inbound, d, receipt)
}

// attempt makes one attempt and returns its receipt. left is the rest of the lease.
func (s *Sink) attempt(ctx context.Context, a Attempt, left time.Duration) topics.Receipt {
	t, ok := s.config.Transports[a.Route.Kind]
	if !ok {
		return topics.Receipt{Outcome: topics.OutcomeRefused, Reason: text(delivery.ReasonUnknownService)}
	}
	inner, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	response, err := exchange(inner, t, a)
	if !writable(response) {
		s.config.Logger.Error("a response is no JSON object in valid UTF-8: dropped", zap.String("delivery", a.DeliveryID))
		response = nil
	}
	var f *Failure
	switch {
	case err == nil:
		return topics.Receipt{Outcome: topics.OutcomeDelivered, Response: response}
	case ctx.Err() != nil: // the transport's error is about the stop, not about the receiver
		receipt := interrupted()
		receipt.Response = response
		return receipt
	case !errors.As(err, &f):
		f = &Failure{Reason: "failed"}
		if errors.Is(err, context.DeadlineExceeded) {
			f.Reason = ReasonTimeout
		}
	}
	receipt := topics.Receipt{
		Outcome: topics.OutcomeFailed, Reason: text(clipped(f.Reason)), Status: int64(f.Status), RetryAfterMS: f.RetryAfter.Milliseconds(),
		Response: response,
	}
	switch {
	case f.Suppressed:
		receipt.Outcome = topics.OutcomeSuppressed
	case f.Final:
		receipt.Outcome = topics.OutcomeRefused
	}
	return receipt
}

// exchange calls the transport. A panic value may contain a payload, so it is not included in the error.
func exchange(ctx context.Context, t Transport, a Attempt) (response topics.Raw, err error) {
	defer func() {
		if p := recover(); p != nil {
			response, err = nil, &Failure{Reason: "transport panicked"}
		}
	}()
	if e, ok := t.(Exchanger); ok {
		return e.Exchange(ctx, a)
	}
	return nil, t.Deliver(ctx, a.Delivery)
}

// interrupted returns the receipt of an attempt that the sink ended, or that may have been made by a sink that died.
func interrupted() topics.Receipt {
	return topics.Receipt{Outcome: topics.OutcomeFailed, Reason: text(delivery.ReasonInterrupted)}
}

// report writes the receipt of an attempt.
func (s *Sink) report(ctx context.Context, r processors.Inbound, d topics.Delivery, receipt topics.Receipt) error {
	receipt.DeliveryID, receipt.SessionID, receipt.Attempt, receipt.Route = d.DeliveryID, d.SessionID, d.Attempt, d.Route
	receipt.Sink, receipt.InFlight = &s.config.Name, int64(s.slots.inFlight(d.Route.Key()))
	receipt.AtMS = s.config.Clock.Now().UnixMilli()
	err := s.write(ctx, r, receipt)
	if errors.Is(err, processors.ErrTooLarge) && receipt.Response != nil {
		receipt = shortened(receipt, s.config.Transports[d.Route.Kind])
		err = s.write(ctx, r, receipt)
	}
	if errors.Is(err, processors.ErrTooLarge) {
		// A redelivery would repeat the attempt and fail in the same way. The group retries when the lease has ended.
		s.config.Logger.Error("receipt does not fit into a record: skipped", zap.String("delivery", d.DeliveryID),
			zap.Int32("partition", r.Partition), zap.Int64("offset", r.Offset), zap.Error(err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("sink: write receipt of delivery %s, attempt %d: %w", d.DeliveryID, d.Attempt, err)
	}
	return nil
}

// write writes a receipt. It waits for brokers that are unavailable: an error would restart the consumer and repeat every
// attempt in flight.
func (s *Sink) write(ctx context.Context, r processors.Inbound, receipt topics.Receipt) error {
	id := receipt.DeliveryID + "/receipt/" + strconv.FormatInt(receipt.Attempt, 10)
	out, err := processors.OutboundOf(s.receipts, string(r.Key), receipt, id)
	if err != nil {
		return err
	}
	return retry.Until(ctx, func() error { return s.to.Publish(ctx, out) }, nil,
		processors.ErrTooLarge, processors.ErrPublisherClosed)
}

// maxReason bounds the reason of a receipt in bytes. A receipt that exceeds the broker's record limit would be retried
// indefinitely.
const maxReason = 256

func clipped(reason string) string { return truncate.Text(reason, maxReason) }

func text(s string) *string { return &s }
