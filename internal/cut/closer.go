package cut

import (
	"context"
	"errors"
)

// Partition names a partition of a topic.
type Partition struct {
	Topic string
	ID    int32
}

// Member identifies the member that commits: the coordinator rejects offsets of a member that has been replaced.
type Member struct {
	Group      string
	ID         string
	InstanceID string // group.instance.id, empty for a dynamic member
	Generation int32
}

// Closer closes cuts. There is one implementation for each processing guarantee; all other code is the same. A Series
// never calls Begin and Close of one Closer at the same time, and calls Abort after its last Close.
type Closer interface {
	// Background reports whether the next cut may be open while this one is being closed. If not, the gate stays shut until
	// Close has returned.
	Background() bool
	// Begin is called before the first record of a cut is handed out.
	Begin() error
	// Close makes the offsets durable; under exactly once it also commits everything produced since Begin. After an error
	// that wraps ErrNotCommitted the next cut commits the offsets; any other error fails the Series and the instance.
	Close(ctx context.Context, offsets map[Partition]int64, m Member) error
	// Abort aborts a cut that was begun and not closed. It is called once Goka has stopped.
	Abort() error
}

// Layer is the part of the local store that a cut advances.
type Layer interface {
	// Seal makes the open layer part of the cut. It must be quick: nothing is in flight meanwhile.
	Seal() bool
	// Flush writes what was sealed since the last flush, in one batch with its changelog offset.
	Flush() error
	// Heavy reports whether so much is sealed that it should be flushed without waiting for more.
	Heavy() bool
}

// Table writes the rows of the group table.
type Table interface {
	// Seal ends the rows of a cut. It must be quick: nothing is in flight meanwhile.
	Seal() Settling
}

// Settling are the rows of a cut that are being written to the changelog.
type Settling interface {
	// Done is closed when all of them are acknowledged, or one has failed.
	Done() <-chan struct{}
	// Err returns why they were not all written. It is valid once Done is closed.
	Err() error
}

var (
	// ErrNotCommitted says that a cut's offsets could not be committed. Nothing is lost: the next cut commits them.
	ErrNotCommitted = errors.New("cut: offsets not committed")
	// ErrDrain says that records in flight did not finish within the drain limit.
	ErrDrain = errors.New("cut: records in flight did not end in time")
	// ErrStore says that the local store could not be written, for example because the disk is full.
	ErrStore = errors.New("cut: local store")
	// ErrKilled says that the instance was killed: nothing was drained or committed.
	ErrKilled = errors.New("cut: killed")
	// ErrLease says that the group coordinator has not acknowledged a heartbeat of this member for so long that another
	// member may own its partitions.
	ErrLease = errors.New("cut: membership not confirmed by the coordinator")
	// ErrUnauthorized says that the broker denies a request of the group. The instance fails and is restarted: the request
	// succeeds once the ACL is granted.
	ErrUnauthorized = errors.New("cut: not authorized by the broker")
	// ErrFenced says that another process has joined the group with this instance id. The instance does not restart.
	ErrFenced = errors.New("cut: fenced, another process runs with the same instance id")
)
