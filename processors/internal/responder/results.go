package responder

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/retry"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/dedup"
)

// Bounds limit what Results remembers. Whichever is reached first evicts the oldest results.
type Bounds struct {
	Age   time.Duration
	Count int
	Bytes int64 // keys, values and headers
}

// DefaultBounds are the bounds of a worker that is given none. Responses repeat the history of their session, so the bytes
// are what most workers reach first.
var DefaultBounds = Bounds{Age: 24 * time.Hour, Count: 10_000, Bytes: 64 << 20}

// Results publishes what a worker made of each of its records, remembers it, and publishes it again when the record is
// repeated. It is safe for concurrent use.
type Results[K comparable] struct {
	to     processors.Publisher
	logger *zap.Logger
	memory *dedup.Memory[K, processors.Outbound]
}

// Shorten returns what takes the place of a record that is refused for its size, and false where nothing does.
type Shorten func(processors.Outbound) (processors.Outbound, bool)

// NewResults returns an empty memory of records that are published to a publisher.
func NewResults[K comparable](to processors.Publisher, b Bounds, c clock.Clock, l *zap.Logger) *Results[K] {
	return &Results[K]{
		to: to, logger: l,
		memory: dedup.NewSized(b.Age, b.Count, b.Bytes, func(_ K, r processors.Outbound) int64 { return sizeOf(r) }, c),
	}
}

// Settle publishes the record that call returns; an empty topic stands for no record. While the record is remembered,
// Settle publishes the same record again and does not call. A Settle of the same key that is under way is waited for.
//
// An error of call says that it was interrupted: nothing is remembered, and the next Settle calls again. An error of
// the publisher is returned too, but the record is remembered: the next Settle publishes it.
func (s *Results[K]) Settle(
	ctx context.Context, key K, shorten Shorten, call func() (processors.Outbound, error),
) error {
	var failed error
	record, repeated, err := s.memory.Do(ctx, key, func() (r processors.Outbound, settled bool) {
		if r, failed = call(); failed != nil {
			return r, false
		}
		r, failed = s.publish(ctx, r, shorten)
		return r, true
	})
	switch {
	case err != nil:
		return err
	case !repeated:
		return failed
	}
	// Also where this call waited for the other: that record may have been written before the one that asks again, and
	// a turn that lost its row in between would read it too early.
	_, err = s.publish(ctx, record, shorten)
	return err
}

// Publish publishes a record, or what takes its place, and remembers nothing.
func (s *Results[K]) Publish(ctx context.Context, r processors.Outbound, shorten Shorten) error {
	_, err := s.publish(ctx, r, shorten)
	return err
}

// publish tries until the brokers have the record, or trying is of no use. It returns the record that it tried last.
func (s *Results[K]) publish(
	ctx context.Context, r processors.Outbound, shorten Shorten,
) (processors.Outbound, error) {
	for r.Topic != "" {
		err := retry.Until(ctx, func() error { return s.to.Publish(ctx, r) }, func(err error) {
			s.logger.Warn("record is not written yet", zap.String("topic", r.Topic), zap.Error(err))
		}, processors.ErrTooLarge, processors.ErrPublisherClosed)
		if !errors.Is(err, processors.ErrTooLarge) {
			return r, err
		}
		shorter, ok := shorten(r)
		if !ok {
			return r, err
		}
		r = shorter
	}
	return r, nil
}

// ShortenLetter is the Shorten of a copy of a record on a dead-letter topic.
func ShortenLetter(r processors.Outbound) (processors.Outbound, bool) {
	l, ok := truncate.DeadLetter{Key: r.Key, Value: r.Value, Headers: r.Headers}.Shorter()
	r.Key, r.Value, r.Headers = l.Key, l.Value, l.Headers
	return r, ok
}

// overhead is what a record costs beside its bytes: its place in the memory, its headers' map.
const overhead = 512

func sizeOf(r processors.Outbound) int64 {
	size := overhead + len(r.Key) + cap(r.Value)
	for name, value := range r.Headers {
		size += len(name) + len(value)
	}
	return int64(size)
}
