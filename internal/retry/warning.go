package retry

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
)

const (
	// firstRepeat and lastRepeat bound the times between two warnings about the same failure. They double.
	firstRepeat = 5 * time.Second
	lastRepeat  = time.Minute
	// maxTexts is how many different errors of one failure are logged at once.
	maxTexts = 8
)

// Warning logs for a loop what it waits for: at once when it begins to fail and when the error is a new one, then again after 5 s and
// after times that double up to a minute, and once when it is over. A failure that returns within a minute is the same one, so that a
// loop that fails every second time does not log every time, and one that has not failed for a minute is another one, also without Over. Its methods are safe for concurrent use; a nil Warning logs nothing.
type Warning struct {
	log        *zap.Logger
	clock      clock.Clock
	text, over string

	failing atomic.Bool
	mu      sync.Mutex
	said    map[string]struct{} // errors that were logged
	logged  bool                // since the failure began
	since   time.Time           // when it began, or was over
	last    time.Time           // when it failed last
	next    time.Time           // when errors that were logged are logged again
	repeat  time.Duration
}

// NewWarning returns the log of a loop. text is that of its warnings, and over that of the entry when they are over. A nil clock is the
// system's.
func NewWarning(log *zap.Logger, c clock.Clock, text, over string) *Warning {
	return &Warning{log: log, clock: cmp.Or(c, clock.System()), text: text, over: over}
}

// Failed notes that the loop has failed and tries again.
func (w *Warning) Failed(err error, fields ...zap.Field) {
	w.FailedAs(err.Error(), append(fields, zap.Error(err))...)
}

// FailedAs is Failed for an error whose text must not be logged, or differs each time. Failures with one cause are one.
func (w *Warning) FailedAs(cause string, fields ...zap.Field) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	if !w.failing.Swap(true) {
		w.since, w.logged = now, false
	}
	if w.said == nil || now.Sub(w.last) >= lastRepeat {
		w.said, w.next, w.repeat = map[string]struct{}{}, now, firstRepeat
	}
	w.last = now
	_, said := w.said[cause]
	switch {
	case !said && len(w.said) < maxTexts:
		w.said[cause], w.repeat = struct{}{}, firstRepeat
	case now.Before(w.next):
		return
	}
	w.logged, w.next, w.repeat = true, now.Add(w.repeat), min(2*w.repeat, lastRepeat)
	w.log.Warn(w.text, fields...)
}

// Over notes that the loop has what it waited for.
func (w *Warning) Over(fields ...zap.Field) {
	if w == nil || !w.failing.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.failing.Swap(false) {
		return
	}
	now := w.clock.Now()
	lasted := now.Sub(w.since)
	if w.since = now; w.logged {
		w.log.Warn(w.over, append(fields, zap.Duration("after", lasted))...)
	}
}
