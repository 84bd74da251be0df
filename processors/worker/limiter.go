package worker

import (
	"context"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
)

// Limiter decides when calls may begin, by their limits. Sessions take turns: however many calls a session has waiting, at
// most two of them begin before the next call of another session. A call that waits for one limit takes nothing from another.
//
// By default, each worker has a Limiter of its own. Workers of one process can share one (Config.Limiter), for example if they
// call the same model. Processes do not share limits: divide a provider's limit by the number of processes.
//
// Its methods are safe for concurrent use. It uses memory only for calls that wait or run, and for keys whose rate was used
// or that were paused recently.
type Limiter struct {
	clock clock.Clock

	mu       sync.Mutex
	state    *admission
	ready    map[callID]chan struct{} // of the calls that wait; closed when the call may begin
	watching bool
	changed  chan struct{} // tells watch that there is another call or pause
}

// NewLimiter returns a limiter that measures time by the system clock.
func NewLimiter() *Limiter { return NewLimiterAt(clock.System()) }

// NewLimiterAt returns a limiter that measures time by the given clock.
func NewLimiterAt(c processors.Clock) *Limiter {
	return &Limiter{
		clock: c, state: newAdmission(), ready: map[callID]chan struct{}{}, changed: make(chan struct{}, 1),
	}
}

// Enter waits until the limits allow a call and returns leave, which must be called when the call has ended. It returns an
// error if ctx ends first, with the context's cause, or if a function of a limit panics.
//
// If ctx is that of a Handler, the record does not occupy a slot while it waits. When the worker stops, ctx ends for
// records that wait; they are delivered again. Enter also checks that the worker still holds the record, and otherwise
// returns an error that wraps ErrLost: the process may have been suspended while others made the call. To make only this
// check, call Enter without limits right before an expensive call.
func Enter[C any](ctx context.Context, l *Limiter, session string, call C, limits ...Limit[C]) (leave func(), err error) {
	needs, err := needsOf(call, limits)
	if err != nil {
		return nil, err
	}
	return l.enter(ctx, session, needs)
}

func (l *Limiter) enter(ctx context.Context, session string, needs []need) (leave func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	ready := make(chan struct{})
	l.mu.Lock()
	id := l.state.Ask(session, needs, l.clock.Now())
	l.ready[id] = ready
	l.admit()
	_, waits := l.ready[id]
	l.mu.Unlock()
	leave = sync.OnceFunc(func() { l.leave(id) })
	if waits {
		resume := waitOutsideSlot(ctx)
		select {
		case <-ready:
		case <-ctx.Done():
		}
		resume()
	}
	if err := confirmHeld(ctx); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// leave ends a call, whether it runs or waits.
func (l *Limiter) leave(id callID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.ready, id)
	l.state.Leave(id, l.clock.Now())
	l.admit()
}

// Pause stops calls with this key of the limit from beginning until d has passed, for example because a provider answered
// with a Retry-After. Running calls continue. A pause that ends before the current one has no effect.
func (l *Limiter) Pause(limit, key string, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	l.state.Pause(bucketOf(limit, key), now.Add(d), now)
	l.admit()
}

// Take takes units of a limit with PerMinute, in addition to the Cost of a running call. A negative number returns units.
// Use it when the real cost is known.
func (l *Limiter) Take(limit, key string, units int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.Take(bucketOf(limit, key), float64(units), l.clock.Now())
	l.admit()
}

// admit lets calls begin that may. l.mu is held.
func (l *Limiter) admit() {
	now := l.clock.Now()
	for _, id := range l.state.Admit(now) {
		close(l.ready[id])
		delete(l.ready, id)
	}
	if l.watching {
		select {
		case l.changed <- struct{}{}:
		default:
		}
		return
	}
	if _, timed := l.state.Next(now); timed {
		l.watching = true
		go l.watch()
	}
}

// shortestWatch keeps watch from spinning if the clock is a little behind.
const shortestWatch = time.Millisecond

// watch lets calls begin when their time has come. It returns when no call waits for a time.
func (l *Limiter) watch() {
	for {
		l.mu.Lock()
		now := l.clock.Now()
		for _, id := range l.state.Admit(now) {
			close(l.ready[id])
			delete(l.ready, id)
		}
		at, timed := l.state.Next(now)
		if !timed {
			l.watching = false
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		timer := l.clock.NewTicker(max(at.Sub(now), shortestWatch))
		select {
		case <-timer.C():
		case <-l.changed:
		}
		timer.Stop()
	}
}
