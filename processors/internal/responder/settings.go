package responder

import (
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/worker"
)

// Settings are what users set of a worker, with the defaults that all workers have in common.
type Settings struct {
	// Config is that of the worker runtime. Its Timeout, Limits, DeadLetter and Drop are zero.
	worker.Config
	Timeout    Timeout
	Remembered Bounds

	invalid error
	bounds.Check
}

// Defaults are what differs between the workers.
type Defaults struct {
	// Invalid is wrapped by the errors.
	Invalid     error
	Group       string
	Archive     string // see worker.Config
	Concurrency int
	// Timeout is that of records without a deadline.
	Timeout time.Duration
	// Transient is the default of RetryPolicy.Retryable. nil: the worker does not retry.
	Transient func(error) bool
}

// NewSettings completes and checks what a user has set: the runtime's configuration, how long after its record an answer may come,
// and what is remembered. Further errors can be added until New.
func NewSettings(c worker.Config, timeout time.Duration, remembered Bounds, by Defaults) (s Settings) {
	s.invalid = by.Invalid
	if c.Timeout != 0 || c.Limits != nil || c.DeadLetter != nil || c.Drop {
		s.Wrong("Config", "sets Timeout, Limits, DeadLetter or Drop, which are the worker's own")
	}
	c.Archive = by.Archive
	if c.Group == "" {
		c.Group = by.Group
	}
	bounds.AtLeast(&s.Check, "Concurrency", &c.Concurrency, by.Concurrency, 1)
	bounds.AtLeast(&s.Check, "ReadAhead", &c.ReadAhead, 1000, 1)
	bounds.AtLeast(&s.Check, "Grace", &c.Grace, 10*time.Second, time.Millisecond)
	s.Timeout = Timeout{After: timeout, Chosen: timeout != 0}
	bounds.AtLeast(&s.Check, "Timeout", &s.Timeout.After, by.Timeout, time.Millisecond)
	bounds.AtLeast(&s.Check, "RememberFor", &remembered.Age, DefaultBounds.Age, 1)
	bounds.AtLeast(&s.Check, "RememberCount", &remembered.Count, DefaultBounds.Count, 1)
	bounds.AtLeast(&s.Check, "RememberBytes", &remembered.Bytes, DefaultBounds.Bytes, 1)
	s.Remembered = remembered
	if by.Transient != nil {
		if err := c.Retry.Invalid(); err != nil {
			s.Wrong("Retry", "is invalid: %w", err)
		}
		if c.Retry.Retryable == nil {
			c.Retry.Retryable = by.Transient
		}
	}
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	s.Config = c
	return s
}

// CheckLimits adds errors about limits.
func CheckLimits[T any](s *Settings, limits []worker.Limit[T]) {
	for _, l := range limits {
		if err := l.Invalid(); err != nil {
			s.Wrong("Limits", "has an invalid one: %w", err)
		}
	}
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
