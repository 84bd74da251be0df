// Package clock is the one place that reads the time. Everything with a deadline takes a Clock, so that tests move it.
package clock

import "time"

// Clock tells the time and wakes at it. Implementations are safe for concurrent use.
type Clock interface {
	// Now is the current time, with millisecond precision or better.
	Now() time.Time
	// NewTicker returns a ticker with a channel of one element: ticks nobody takes are dropped. period is positive.
	NewTicker(period time.Duration) Ticker
}

// Ticker is a time.Ticker behind an interface.
type Ticker interface {
	C() <-chan time.Time
	Stop()
}
