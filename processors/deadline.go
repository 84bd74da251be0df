package processors

import (
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/timer"
)

// Timed is implemented by the codec of a group table whose rows have deadlines. New adds a timer to such a graph. Under a
// plain goka.NewProcessor no deadline fires.
type Timed = timer.Timed

// Due is a deadline that is due. At is its time.
type Due = timer.Due

// OnDeadline runs h as the handler of a deadline. Call it from an implementation of Timed.OnDeadline. As for a record, the
// effects of h are carried out after it has returned nil, outputs first. If h returns an error, the processor restarts and
// the deadline fires again. If h panics, its effects are dropped and a dead letter with the row's key and a null value is
// sent; the deadline does not fire again until the row is written or recovered. Context.Timestamp is the time at which
// the deadline fired.
func OnDeadline(ctx goka.Context, h func(*Context) error) {
	perform(newContext(ctx, settingsOf(ctx), nil), StageDeadline, h)
}
