package responder

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/worker"
)

// Settings are the options of a worker. Each Set method implements the option of its name and records an error for an invalid
// value.
type Settings struct {
	Group       string
	Concurrency int
	Window      int
	Timeout     Timeout
	Drain       time.Duration
	Remembered  Bounds
	Limiter     *worker.Limiter
	Retry       worker.RetryPolicy // of workers that implement WithRetry
	Runtime     []worker.Option
	Clock       processors.Clock
	Logger      *zap.Logger

	config error
	errs   []error
}

// Defaults returns the default settings of a worker with a group and a timeout. config is wrapped by the errors.
func Defaults(config error, group string, timeout time.Duration) Settings {
	return Settings{
		Group: group, Concurrency: 16, Window: 1000, Timeout: Timeout{After: timeout}, Drain: 10 * time.Second,
		Remembered: DefaultBounds, Clock: clock.System(), Logger: zap.NewNop(), config: config,
	}
}

// Invalid records an error.
func (s *Settings) Invalid(format string, args ...any) {
	s.errs = append(s.errs, fmt.Errorf("%w: "+format, append([]any{s.config}, args...)...))
}

// SetGroup implements WithGroup.
func (s *Settings) SetGroup(group string) {
	if group == "" {
		s.Invalid("WithGroup: empty name")
	}
	s.Group = group
}

// AtLeastOne records an error for an option with a number below 1, and returns at least 1.
func (s *Settings) AtLeastOne(option string, n int) int {
	if n < 1 {
		s.Invalid("%s: %d, want at least 1", option, n)
	}
	return max(n, 1)
}

// SetTimeout implements WithTimeout.
func (s *Settings) SetTimeout(d time.Duration) {
	if d < time.Millisecond {
		s.Invalid("WithTimeout: %s, want at least a millisecond", d)
	}
	s.Timeout = Timeout{After: d, Chosen: true}
}

// SetDrain implements WithDrain.
func (s *Settings) SetDrain(d time.Duration) {
	if d <= 0 {
		s.Invalid("WithDrain: %s, want a positive time", d)
	}
	s.Drain = d
}

// SetRemembered implements WithRemembered.
func (s *Settings) SetRemembered(b Bounds) {
	if !b.Valid() {
		s.Invalid("WithRemembered: %v, %d, %d bytes, want positive bounds", b.Age, b.Count, b.Bytes)
	}
	s.Remembered = b
}

// SetLimiter implements WithLimiter.
func (s *Settings) SetLimiter(l *worker.Limiter) {
	if l == nil {
		s.Invalid("WithLimiter: nil")
	}
	s.Limiter = l
}

// SetClock implements WithClock.
func (s *Settings) SetClock(c processors.Clock) {
	if c == nil {
		s.Invalid("WithClock: nil")
		return
	}
	s.Clock = c
}

// SetLogger implements WithLogger.
func (s *Settings) SetLogger(l *zap.Logger) {
	if l == nil {
		s.Invalid("WithLogger: nil")
		return
	}
	s.Logger = l
}

// AddLimits implements WithLimits: it returns all with further limits.
func AddLimits[T any](s *Settings, all, further []worker.Limit[T]) []worker.Limit[T] {
	for _, l := range further {
		if err := l.Invalid(); err != nil {
			s.Invalid("WithLimits: %w", err)
		}
	}
	return append(all, further...)
}

// Begun returns when a record was written, or the current time if it does not say.
func (s *Settings) Begun(r processors.Inbound) time.Time {
	if r.Timestamp.UnixMilli() <= 0 {
		return s.Clock.Now()
	}
	return r.Timestamp
}

// Deadline returns when a record must be answered.
func (s *Settings) Deadline(r processors.Inbound) time.Time { return s.Timeout.Deadline(r, s.Begun(r)) }
