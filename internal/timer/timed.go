// Package timer fires the deadlines that are stored in the rows of a group table. It has an index of deadlines for each
// partition, and the virtual topic that delivers due deadlines to Goka.
package timer

import (
	"time"

	"github.com/lovoo/goka"
)

// Timed is implemented by the codec of a group table whose rows carry deadlines.
type Timed interface {
	goka.Codec
	// Deadline returns the earliest open deadline of an encoded row, in milliseconds since the epoch; ok is false if the
	// row has none. A deadline of zero or less is due at once. Deadline is called for every row that is written or
	// recovered: it must be cheap, must not keep row, and must not panic on bytes that it cannot decode.
	Deadline(row []byte) (ms int64, ok bool)
	// OnDeadline is called in the partition's own goroutine, as a record's callback is, when a row's earliest deadline is
	// due: ctx.Key is the row's key, ctx.Timestamp the time on the runtime's clock. The row may have changed since then:
	// OnDeadline must read the row and handle only what is still due. It fires once per deadline of a row until the row is
	// written again; if it writes a row whose deadline is unchanged, it fires again on the next tick.
	OnDeadline(ctx goka.Context, due Due)
}

// Due is the message of the virtual timer topic: a deadline that is due.
type Due struct{ At time.Time }
