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

// Member is who commits: the coordinator refuses offsets of a member that has been replaced.
type Member struct {
	Group      string
	ID         string
	Instance   string // group.instance.id, empty for a dynamic member
	Generation int32
}

// Closer ends a cut: one implementation for each processing guarantee, everything else is the same code. A Series calls
// Begin and Close of one Closer never at the same time, Abort after its last Close.
type Closer interface {
	// Background reports whether the next cut may be open while this one is closed. Where it may not, the gate stays
	// shut until Close has returned.
	Background() bool
	// Begin is called before the first record of a cut is handed out.
	Begin() error
	// Close makes the offsets durable, with everything produced since Begin where the guarantee says so. An error that
	// wraps ErrNotCommitted leaves the offsets to the next cut; any other ends the session and the unit.
	Close(ctx context.Context, offsets map[Partition]int64, m Member) error
	// Abort gives up what was begun and not closed. Goka has stopped when it is called.
	Abort() error
}

// Layer is the part of the local store that a cut advances.
type Layer interface {
	// Seal sets the open layer apart as the cut's. It is quick: nothing is in flight meanwhile.
	Seal() bool
	// Flush writes what was sealed since the last flush, in one batch with its changelog offset.
	Flush() error
	// Heavy reports whether that is so much that it should not wait for more.
	Heavy() bool
}

// Table is who writes the rows of the group table.
type Table interface {
	// Seal ends the rows of a cut. It is quick: nothing is in flight meanwhile.
	Seal() Settling
}

// Settling are the rows of a cut on their way to the changelog.
type Settling interface {
	// Done is closed when all of them are there, or one is refused.
	Done() <-chan struct{}
	// Err is why they are not all there, once Done is closed.
	Err() error
}

var (
	// ErrNotCommitted says that a cut's offsets could not be committed now. Nothing is lost: the next cut carries them.
	ErrNotCommitted = errors.New("cut: offsets not committed")
	// ErrDrain says that what was in flight did not end within the drain limit.
	ErrDrain = errors.New("cut: records in flight did not end in time")
	// ErrKilled says that the unit was killed: nothing was drained or committed.
	ErrKilled = errors.New("cut: killed")
	// ErrLease says that the group coordinator has not acknowledged this member for so long that another may own its
	// partitions by now.
	ErrLease = errors.New("cut: membership not confirmed by the coordinator")
	// ErrUnauthorized says that the broker denies a request of the group. The unit fails and is restarted: the request
	// succeeds once the ACL is granted.
	ErrUnauthorized = errors.New("cut: not authorized by the broker")
	// ErrFenced says that another process has taken this instance's identity. It is final.
	ErrFenced = errors.New("cut: fenced, another process runs with the same instance id")
)
