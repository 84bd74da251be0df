package agenttest

import (
	"sync"
	"time"

	"github.com/turntable-streams/turntable/processors"
)

// start is the time at which the clock of a test begins.
var start = time.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC)

// Advance moves the clock forward. What becomes due meanwhile happens at its time and in its order: timeouts of turns, tools
// and gates, and repeated calls of a model that was unavailable. What has happened then is committed, see Crash.
func (s *Agent) Advance(by time.Duration) {
	s.tb.Helper()
	s.work()
	end := s.Now().Add(by)
	for {
		at, ok := s.next()
		if !ok || at.After(end) {
			break
		}
		s.driver.Advance(max(at.Sub(s.Now()), 0))
		s.wake()
		s.work()
		s.interrupt(func(c *call) bool { return !c.deadline.IsZero() && !c.deadline.After(s.Now()) })
		s.work()
	}
	s.driver.Advance(end.Sub(s.Now()))
	s.Commit()
}

// next returns when the clock is waited for next.
func (s *Agent) next() (at time.Time, ok bool) {
	at, ok = s.driver.NextDeadline()
	for _, c := range s.open {
		if c.wait.ticker != nil && (!ok || c.wait.ticker.at.Before(at)) {
			at, ok = c.wait.ticker.at, true
		}
	}
	return at, ok
}

// clock is the test's clock. Handlers wait on it only before they call a model again.
type clock struct{ s *Agent }

func (c clock) Now() time.Time { return c.s.Now() }

func (c clock) NewTicker(period time.Duration) processors.Ticker {
	t := &ticker{at: c.s.Now().Add(period), ticks: make(chan time.Time, 1)}
	c.s.current.pauses++
	c.s.current.park(wait{ticker: t})
	return t
}

// ticker ticks once.
type ticker struct {
	at    time.Time
	ticks chan time.Time
}

func (t *ticker) C() <-chan time.Time { return t.ticks }
func (t *ticker) Stop()               {}

// wake continues the calls that have waited for the current time.
func (s *Agent) wake() {
	s.settle(func(c *call) bool {
		t := c.wait.ticker
		if t == nil || t.at.After(s.Now()) {
			return false
		}
		s.turnTo(c)
		t.ticks <- s.Now()
		return true
	})
}

// unlimited is a clock on which the pause of a rate-limited model has always ended.
type unlimited struct {
	mu    sync.Mutex
	years int
}

func (u *unlimited) Now() time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.years++
	return start.AddDate(u.years, 0, 0)
}

func (*unlimited) NewTicker(time.Duration) processors.Ticker { return &ticker{} }
