// Package clock defines the clock that deadlines are measured by. Code with a deadline takes a Clock, so that tests can
// move the time.
package clock

import "time"

// Clock tells the time and makes tickers. Implementations are safe for concurrent use.
type Clock interface {
	// Now returns the current time, with millisecond precision or better.
	Now() time.Time
	// NewTicker returns a ticker whose channel holds one tick; further ticks are dropped until it is read. It panics if
	// period is not positive.
	NewTicker(period time.Duration) Ticker
}

// Ticker is a time.Ticker behind an interface. It is an alias of its type literal, and so is processors.Ticker: Clock and
// processors.Clock then have identical methods.
type Ticker = interface {
	C() <-chan time.Time
	Stop()
}
