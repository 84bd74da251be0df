package clock

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Fake is a Clock whose time changes only by Advance and Set. Use NewFake. It is safe for concurrent use.
//
// One move gives a ticker at most one tick, however many of its periods ended, so that a test does not depend on how fast
// the ticks are read. The time is moved before the first tick is sent: a reader that receives a tick sees the new time.
type Fake struct {
	mu      sync.Mutex
	now     time.Time
	tickers map[*fakeTicker]struct{}
	changed chan struct{} // closed and replaced when a ticker is created or stopped
}

// NewFake returns a Fake whose time is start.
func NewFake(start time.Time) *Fake {
	return &Fake{now: start, tickers: map[*fakeTicker]struct{}{}, changed: make(chan struct{})}
}

// Now returns the time the clock was last moved to.
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// Advance moves the clock by d. It does not wait for the readers of its tickers.
func (f *Fake) Advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.move(f.now.Add(d))
}

// Set moves the clock to t. A move back sends no tick and restarts the period of every ticker.
func (f *Fake) Set(t time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.move(t)
}

func (f *Fake) move(to time.Time) {
	back := to.Before(f.now)
	f.now = to
	for t := range f.tickers {
		if back {
			t.next = to.Add(t.period)
			continue
		}
		t.tick(to)
	}
}

// NewTicker returns a ticker that ticks when the clock is moved over the end of a period. It panics on a period that is
// not positive, as time.NewTicker does.
func (f *Fake) NewTicker(period time.Duration) Ticker {
	if period <= 0 {
		panic(fmt.Sprintf("clock: ticker period %s is not positive", period))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &fakeTicker{clock: f, c: make(chan time.Time, 1), period: period, next: f.now.Add(period)}
	f.tickers[t] = struct{}{}
	f.announce()
	return t
}

// Tickers returns the number of tickers that are not stopped.
func (f *Fake) Tickers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.tickers)
}

// WaitTickers blocks until at least n tickers run, or until ctx ends and returns an error that wraps ctx.Err(). A test
// calls it before it moves the clock, so that the code under test has its ticker.
func (f *Fake) WaitTickers(ctx context.Context, n int) error {
	for {
		f.mu.Lock()
		running, changed := len(f.tickers), f.changed
		f.mu.Unlock()
		if running >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("clock: %d of %d tickers: %w", running, n, ctx.Err())
		}
	}
}

func (f *Fake) announce() {
	close(f.changed)
	f.changed = make(chan struct{})
}

type fakeTicker struct {
	clock  *Fake
	c      chan time.Time
	period time.Duration
	next   time.Time
}

func (t *fakeTicker) C() <-chan time.Time { return t.c }

// Stop ends the ticks; like a time.Ticker's it leaves the channel open and may be called again.
func (t *fakeTicker) Stop() {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	if _, running := t.clock.tickers[t]; running {
		delete(t.clock.tickers, t)
		t.clock.announce()
	}
}

// tick sends the end of the last period that is not after now; the following one keeps the ticker's phase.
func (t *fakeTicker) tick(now time.Time) {
	if t.next.After(now) {
		return
	}
	last := t.next.Add(now.Sub(t.next) / t.period * t.period)
	t.next = last.Add(t.period)
	select {
	case t.c <- last:
	default:
	}
}
