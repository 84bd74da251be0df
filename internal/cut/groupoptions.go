package cut

import (
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"
)

// Options configures a Group.
type Options struct {
	Name       string // of the group
	InstanceID string // group.instance.id, empty for a dynamic member
	Closer     Closer
	Policy     Policy
	// Layers returns the open local stores of the group table's partitions.
	Layers func() []Layer
	// Table returns the writer of the group table's rows; it is called in each generation. nil: no rows are written.
	Table func() Table
	// Repartitioned are inputs that Goka does not read; Send sends what is sent for their records (see Producer.Send).
	Repartitioned Repartitioned
	Send          func(out Outgoing, done func(error))
	// Timers is nil for a group without deadlines.
	Timers *Timers
	// Client sends commits, heartbeats and offset requests, which do not wait for a long poll on it. The Group does not own
	// it.
	Client sarama.Client
	// Joins is the balance strategy of the group; nil for a dynamic member, which has no identity to lose.
	Joins *Joins
	// Lease may be nil. Heartbeat is how often it is renewed.
	Lease     *Lease
	Heartbeat time.Duration
	// Unstable, if not nil, is called when a predecessor's transaction holds offsets that this member needs, before it
	// requests them again. It may block for requests.
	Unstable func()
	// Leaving, if not nil, closes the member's producer before the member leaves the group: records that the producer still
	// retried would follow the rows of the next owner.
	Leaving func()
	// Epochs, if not nil, is notified of each claim that begins.
	Epochs *Epochs
	// Truncated, if not nil, is called for a claim that Sarama starts at its oldest offset. It returns the offset at which
	// to start instead, or an offset that is not above the oldest to keep it.
	Truncated func(p Partition) (int64, error)
	// Listing is the metadata of an offset that is committed because of Truncated; it may be nil.
	Listing *Listing
	// Relist commits the first position of each claim even if it is committed already, because the committed metadata is
	// out of date.
	Relist bool
	// Events may be zero.
	Events Events
	Log    *zap.Logger
}

// Events notify the instance of the states of a group. They are called from several goroutines and must not block.
type Events struct {
	// Recovering: partitions were assigned, tables are being read.
	Recovering func(generation int32, partitions int)
	// Running: tables are recovered, records flow.
	Running func(generation int32)
	// Made: a cut was made and its offsets are committed.
	Made func(Made)
	// Ended: the generation is over.
	Ended func(generation int32, cuts int64)
}
