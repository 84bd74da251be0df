package processors

import (
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/internal/store"
)

// Clock provides the current time and tickers. Deadlines and Context.Now use it. Its methods must be safe for concurrent
// use.
type Clock interface {
	// Now returns the current time, with millisecond precision or better.
	Now() time.Time
	// NewTicker returns a ticker that sends the time on its channel once per period, until it is stopped. The channel
	// holds one tick; further ticks are dropped until it is read. NewTicker panics if period is not positive.
	NewTicker(period time.Duration) Ticker
}

// Ticker is the ticker that a Clock returns: a time.Ticker behind an interface.
type Ticker = interface {
	// C returns the channel of ticks. Every call returns the same channel.
	C() <-chan time.Time
	// Stop ends the ticks. It does not close the channel and may be called again.
	Stop()
}

// Timed is implemented by the codec of a group table whose rows have deadlines. New adds a timer to such a graph. Under a
// plain goka.NewProcessor no deadline fires.
type Timed interface {
	goka.Codec
	// Deadline returns the earliest open deadline of an encoded row, in milliseconds since the epoch. ok is false if the
	// row has none. A deadline of zero or less is due as soon as the inputs are read. Deadline is called for every row that is written or
	// recovered: it must be cheap, must not keep row, and must not panic on bytes that it cannot decode.
	Deadline(row []byte) (ms int64, ok bool)
	// OnDeadline is called when the earliest deadline of a row is due, in the goroutine that handles the records of the
	// row's partition. ctx.Key is the key of the row. The row may have changed in the meantime: OnDeadline reads the row and handles
	// only what is still due.
	//
	// After a downtime or a lag, a deadline waits until the records that were written before it are handled, because one of them may
	// end what the deadline would end. ctx.Timestamp is the time through which they are, on the runtime's clock: the deadline or
	// later. What is due after it may have such a record, and fires again. Records of Repartitioned inputs, and those that are on
	// their way to the partition, do not count. A deadline waits for 30 s at most, from when it is due or, if that is later, from when
	// this processor began to read the partition: an input may never be read to its end.
	//
	// A deadline fires once, and then not again until its row is written. If OnDeadline writes a row whose deadline is
	// unchanged, the deadline fires again on the next tick (see WithTick).
	OnDeadline(ctx goka.Context, due Due)
}

// The runtime finds the codecs with deadlines by its own interface.
var _ store.Timed = Timed(nil)

// Due is a deadline that is due. At is its time.
type Due = struct{ At time.Time }

// OnDeadline runs h as the handler of a deadline. Call it from an implementation of Timed.OnDeadline. As for a record, the
// effects of h are carried out after it has returned nil, outputs first. If h returns an error, it is called again as the
// handler of a record is. If it panics, or after the last attempt, its effects are dropped and a dead letter with the row's
// key and a null value is sent; the deadline does not fire again until the row is written or recovered. Attempts at a
// deadline are counted in the process only. Context.Timestamp is the time through which the inputs have been read, Context.Offset
// the deadline in milliseconds since the epoch.
func OnDeadline(ctx goka.Context, h func(*Context) error) {
	if hasEnded(ctx) {
		return
	}
	perform(newContext(ctx, settingsOf(ctx), nil), StageDeadline, h)
}

// Progress is how far the inputs of a group have been read in one partition. Inputs that are Repartitioned do not count.
type Progress struct {
	// Through is a time on the runtime's clock (WithClock): every record that was written to the inputs before it has been
	// handled. It is zero if nothing is known, for example because the processor has just started to read, or because a broker
	// does not answer.
	Through time.Time
	// Since is when this processor began to read the partition: at its start, or after a rebalance.
	Since time.Time
}

// Progress returns how far the inputs have been read in the partition of the handler of a deadline. A deadline waits for records
// that may be unread, but not for long (see Timed). A handler that would lose much can write a later deadline while
// Progress().Through is before the deadline. Limit how often, because Through may never come: a broker may not answer for a long
// time, and a transaction may stay open.
//
// Progress may ask the brokers where the inputs end, and blocks for 250 ms at most. In the handler of a record it returns the
// zero Progress.
func (c *Context) Progress() (p Progress) {
	_ = c.locked(func(ctx goka.Context) error {
		if r, ok := unbound(ctx).(runtimeapi.Reader); ok {
			p = Progress(r.Progress())
		}
		return nil
	})
	return p
}
