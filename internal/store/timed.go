package store

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
