package responder

import (
	"context"
	"time"
)

// End is how a call ended.
type End int

const (
	// Returned is the end of a call without an error, whenever it returned.
	Returned End = iota
	// Failed is the end of a call with an error of its own.
	Failed
	// Late is the end of a call at its deadline. A call whose deadline had passed is not made.
	Late
	// TurnEnded is the end of a call with its turn: no one waits for its answer.
	TurnEnded
	// Skipped is the end of a call that was not made, because its turn had ended.
	Skipped
	// Stopped is the end of a call with the context of its delivery: the record is delivered again.
	Stopped
)

// Call makes a call of a model, a tool or a compactor. The call's context ends at the deadline, with ctx, and when the turn has
// its output that id, the turntable.id of the record, names (cause ErrTurnEnded).
func (r *Responder[K]) Call(
	ctx context.Context, id string, deadline time.Time, call func(ctx context.Context) error,
) End {
	watched, stop := r.ended.Watch(ctx, id)
	defer stop()
	left := deadline.Sub(r.settings.Clock.Now())
	switch {
	case ctx.Err() != nil:
		return Stopped
	case watched.Err() != nil:
		return Skipped
	case left <= 0:
		return Late
	}
	inner, cancel := context.WithTimeout(watched, left)
	defer cancel()
	err := call(inner)
	switch {
	case err == nil:
		return Returned
	case ctx.Err() != nil: // the error may only reflect the end of ctx
		return Stopped
	case watched.Err() != nil:
		return TurnEnded
	case inner.Err() != nil:
		return Late
	default:
		return Failed
	}
}
