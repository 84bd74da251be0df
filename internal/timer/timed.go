// Package timer makes the deadlines that are stored in the rows of a group table fire. The local store keeps an Index of them
// for each partition. The timer claims of internal/cut pop what is due from it and hand it to Goka as records of a virtual
// topic, whose edge WithEdge adds to the graph.
package timer

import (
	"time"

	"github.com/lovoo/goka"
)

// Timed is implemented by the codec of a group table whose rows have deadlines. processors.Timed documents its methods.
type Timed interface {
	goka.Codec
	Deadline(row []byte) (ms int64, ok bool)
	OnDeadline(ctx goka.Context, due Due)
}

// Due is the message of the virtual timer topic: a deadline that is due. It is an alias of its type literal, and so is
// processors.Due: Timed and processors.Timed then have identical methods.
type Due = struct{ At time.Time }
