package platform

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
)

// firstWait and longestWait bound the waits between sessions. The wait doubles from one session without progress to the next.
const (
	firstWait   = time.Second
	longestWait = time.Minute
)

// ReconnectWait returns how long to wait before the next session, after a number of sessions in a row that made no progress.
func ReconnectWait(failed int) time.Duration {
	if failed > 6 {
		return longestWait
	}
	return min(firstWait<<max(failed, 0), longestWait)
}

// Reconnect runs session until ctx ends, and then returns nil. A session returns when its connection is lost, and reports whether
// it made progress, such as an event that it received: the waits then start again at one second. After an adapter.Failure with
// RetryAfter the wait is at least that. Only a Failure's reason is logged, because other errors may contain an address or a
// secret. A nil logger logs nothing.
func Reconnect(ctx context.Context, c clock.Clock, log *zap.Logger, session func(context.Context) (progress bool, err error)) error {
	for failed := 0; ctx.Err() == nil; failed++ {
		progress, err := session(ctx)
		if ctx.Err() != nil {
			break
		}
		if progress {
			failed = 0
		}
		wait, reason := ReconnectWait(failed), "connection ended"
		var failure *adapter.Failure
		if errors.As(err, &failure) {
			wait, reason = max(wait, failure.RetryAfter), failure.Reason
		}
		if log != nil {
			log.Warn("connection to the platform was lost; connecting again after a wait", zap.String("reason", reason), zap.Duration("wait", wait))
		}
		clock.Sleep(ctx, c, wait)
	}
	return nil
}

// Poll is Reconnect for a platform that is asked for events again and again: each poll that succeeds is progress, and some of one that
// fails may be.
func Poll(ctx context.Context, c clock.Clock, log *zap.Logger, poll func(context.Context) (progress bool, err error)) error {
	return Reconnect(ctx, c, log, func(ctx context.Context) (progress bool, err error) {
		for err == nil && ctx.Err() == nil {
			var some bool
			some, err = poll(ctx)
			progress = progress || some || err == nil
		}
		return progress, err
	})
}
