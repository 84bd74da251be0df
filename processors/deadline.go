package processors

import (
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/timer"
)

// Timed is implemented by the codec of a group table whose rows carry deadlines; New then adds the timer. Under a plain
// goka.NewProcessor no deadline fires.
type Timed = timer.Timed

// Due is a deadline that has come.
type Due = timer.Due

// OnDeadline runs the handler of a deadline, for an implementation of Timed.OnDeadline, as the handler of a record is
// run: its effects happen after it has returned nil, outputs first. An error stops the processor, which restarts and
// fires again. A panic leaves a dead letter with the row's key and a null value, and no effects: the deadline does not
// fire again before the row is written, or recovered. Context.Timestamp is the time it fired.
func OnDeadline(ctx goka.Context, h func(*Context) error) {
	perform(newContext(ctx, settingsOf(ctx), nil), StageDeadline, h)
}
