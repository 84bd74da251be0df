package auth

import "time"

// Clock is the clock by which a credential expires. A processors.Clock is one.
type Clock interface {
	Now() time.Time
	NewTicker(period time.Duration) interface {
		C() <-chan time.Time
		Stop()
	}
}

const (
	// recheck is how often Await calls Revoked.
	recheck = 10 * time.Second
	// longest is the longest wait of Await, so that a clock that was set, or a machine that was suspended, delays the end of a
	// credential no longer than this.
	longest = time.Minute
)

// Lasts reports whether the credential never ends. Await then waits until done is closed.
func (c Caller) Lasts() bool { return c.Expires.IsZero() && c.Revoked == nil }

// Await blocks until the credential has ended and returns true, or until done is closed and returns false. A door uses it to
// end the streams and sockets of a caller. It starts no goroutine.
func (c Caller) Await(done <-chan struct{}, clock Clock) bool {
	for {
		now := clock.Now()
		if c.Ended(now) {
			return true
		}
		wait := longest
		if c.Revoked != nil {
			wait = recheck
		}
		if !c.Expires.IsZero() {
			wait = min(wait, c.Expires.Sub(now))
		}
		ticker := clock.NewTicker(wait)
		select {
		case <-ticker.C():
			ticker.Stop()
		case <-done:
			ticker.Stop()
			return false
		}
	}
}
