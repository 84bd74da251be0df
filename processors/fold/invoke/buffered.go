package invoke

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
)

// Buffered is an Agent whose runs continue when the client disconnects. It keeps their events in memory, so that a client
// that lost its connection can resume in the same process. Create it with NewBuffered and stop it with Close. It is safe
// for concurrent use.
type Buffered struct {
	agent Agent
	rules bufferRules

	ctx  context.Context // cancelled by Close
	stop context.CancelFunc
	runs sync.WaitGroup

	mu     sync.Mutex
	closed bool
	turns  map[turnKey]*recording
	order  []*recording // the oldest first
	bytes  int
	shares shares
}

type turnKey struct{ session, turn string }

type bufferRules struct {
	turns, turnBytes, bytes int
	caller, session         int // turns of one caller and of one session; 0: by default
	keep                    time.Duration
	clock                   processors.Clock
}

// BufferOption configures NewBuffered.
type BufferOption func(*bufferRules)

// WithBufferLimits sets how many turns are kept (default 1000), how many bytes of events one turn can have (default 16
// MiB), and how many all turns together (default 256 MiB, at least turnBytes). All are at least 1. A larger turn fails.
// When the buffer is full, the oldest ended turn is evicted; if all turns are running, new requests get 503.
func WithBufferLimits(turns, turnBytes, bytes int) BufferOption {
	return func(r *bufferRules) { r.turns, r.turnBytes, r.bytes = turns, turnBytes, bytes }
}

// WithBufferShares sets how many of the turns one caller and one session can have (default: a quarter of the turns of
// WithBufferLimits for a caller, 16 for a session; 16 for a caller if that is more; at least 1). At the limit, its own oldest
// ended turn is evicted; if all of them are running, a request gets 429. One caller can have a quarter of the bytes, or one
// turn's if that is more. Callers are told apart as in the limits of the door (WithLimits).
func WithBufferShares(caller, session int) BufferOption {
	return func(r *bufferRules) { r.caller, r.session = caller, session }
}

// WithBufferTime sets how long a turn is kept after it has ended (default 5 min).
func WithBufferTime(keep time.Duration) BufferOption { return func(r *bufferRules) { r.keep = keep } }

// WithBufferClock sets the clock for WithBufferTime (default: the system clock).
func WithBufferClock(c processors.Clock) BufferOption { return func(r *bufferRules) { r.clock = c } }

// defaultShare is how many turns a session, or a caller of a small buffer, can have.
const defaultShare = 16

// NewBuffered returns an Agent that buffers the turns of a. A turn's id is made of the request's trace and span ids. It
// fails with ErrDoor if a is nil or an option is out of range.
func NewBuffered(a Agent, opts ...BufferOption) (*Buffered, error) {
	r := bufferRules{turns: 1000, turnBytes: 16 << 20, bytes: 256 << 20, keep: 5 * time.Minute, clock: clock.System()}
	for _, opt := range opts {
		opt(&r)
	}
	if r.caller == 0 && r.session == 0 {
		r.caller, r.session = max(r.turns/4, defaultShare), defaultShare
	}
	if a == nil || r.caller < 1 || r.session < 1 || r.turns < 1 || r.turnBytes < 1 || r.bytes < r.turnBytes || r.keep < 0 || r.clock == nil {
		return nil, fmt.Errorf("%w: a buffer needs an agent, a clock and limits above zero", ErrDoor)
	}
	b := &Buffered{agent: a, rules: r, turns: map[turnKey]*recording{}, shares: newShares()}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b, nil
}

// Capability returns the wrapped agent's Capability.
func (b *Buffered) Capability() Capability {
	if c, ok := b.agent.(Capable); ok {
		return c.Capability()
	}
	return Capability{}
}

// Close cancels all runs and waits for them to end. New turns then get 503.
func (b *Buffered) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.stop()
	b.runs.Wait()
	return nil
}

var (
	errBusy  = &Error{Status: http.StatusServiceUnavailable, Code: "busy", Text: "too many turns are running"}
	errShare = &Error{
		Status: http.StatusTooManyRequests, Type: TypeUnknown, Code: "busy", Text: "too many turns of the caller or the session are running",
		RetryAfter: time.Second,
	}
	errClosed = &Error{Status: http.StatusServiceUnavailable, Code: "stopping", Text: "the service is stopping"}
	errLarge  = &Error{Code: "too_large", Text: "the turn is too large to be kept"}
)

// Invoke implements Agent. The run continues when ctx is done.
func (b *Buffered) Invoke(ctx context.Context, r Request) (Stream, error) {
	rec := &recording{
		key: turnKey{r.SessionID, r.Trace.TraceID + "-" + r.Trace.SpanID}, caller: r.callerKey,
		changed: make(chan struct{}), attempt: 1,
	}
	if err := b.enter(rec); err != nil {
		return nil, err
	}
	defer b.runs.Done()
	// The run keeps the values of the caller's context but not its cancellation.
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unlink := context.AfterFunc(b.ctx, cancel)
	began := false
	defer func() { // also if the agent panics
		if !began {
			unlink()
			cancel()
			b.leave(rec)
		}
	}()
	stream, err := b.agent.Invoke(run, r)
	if err != nil {
		return nil, err
	}
	began = true
	b.runs.Go(func() {
		defer cancel()
		defer unlink()
		b.record(run, stream, rec)
	})
	return &playback{rec: rec, attempt: 1}, nil
}

// Resume implements Resumer.
func (b *Buffered) Resume(_ context.Context, r Request, last EventID) (Stream, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget()
	rec := b.turns[turnKey{r.SessionID, last.Turn}]
	if rec == nil || !rec.reaches(last) {
		return nil, ErrGone
	}
	return &playback{rec: rec, attempt: last.Attempt}, nil
}

// enter adds a turn and evicts old ones if the buffer is full.
func (b *Buffered) enter(rec *recording) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget()
	if b.closed {
		return errClosed
	}
	for b.shares.callers[rec.caller].turns >= b.rules.caller {
		if !b.evict(func(r *recording) bool { return r.caller == rec.caller }) {
			return errShare
		}
	}
	for b.shares.sessions[rec.key.session] >= b.rules.session {
		if !b.evict(func(r *recording) bool { return r.key.session == rec.key.session }) {
			return errShare
		}
	}
	for len(b.order) >= b.rules.turns || b.bytes > b.rules.bytes {
		if !b.evict(anyone) {
			return errBusy
		}
	}
	b.runs.Add(1)
	b.shares.add(rec, 1, 0)
	b.turns[rec.key] = rec
	b.order = append(b.order, rec)
	return nil
}

// forget drops turns that ended more than WithBufferTime ago. The caller of forget and evict holds the lock.
func (b *Buffered) forget() {
	now := b.rules.clock.Now()
	for i := 0; i < len(b.order); {
		if at, done := b.order[i].ended(); done && now.Sub(at) >= b.rules.keep {
			b.drop(i)
			continue
		}
		i++
	}
}

// evict drops the oldest turn of some that has ended; false if there is none.
func (b *Buffered) evict(of func(*recording) bool) bool {
	for i, rec := range b.order {
		if _, done := rec.ended(); done && of(rec) {
			b.drop(i)
			return true
		}
	}
	return false
}

func anyone(*recording) bool { return true }

func (b *Buffered) drop(i int) {
	rec := b.order[i]
	b.bytes -= rec.held()
	b.shares.add(rec, -1, -rec.held())
	delete(b.turns, rec.key)
	b.order = append(b.order[:i], b.order[i+1:]...)
}

func (b *Buffered) leave(rec *recording) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, r := range b.order {
		if r == rec {
			b.drop(i)
			return
		}
	}
}

// record stores the events of a run until it ends.
func (b *Buffered) record(ctx context.Context, s Stream, rec *recording) {
	var err error
	defer func() {
		if thrown := recover(); thrown != nil {
			err = fmt.Errorf("%w: %T", errPanic, thrown)
		}
		rec.close(err, s, b.rules.clock.Now())
	}()
	for {
		var item Item
		item, err = s.Next(ctx)
		var superseded *Superseded
		switch {
		case errors.As(err, &superseded) && ctx.Err() == nil:
			freed := rec.restart()
			b.mu.Lock()
			b.bytes -= freed
			b.shares.add(rec, 0, -freed)
			b.mu.Unlock()
			continue
		case err != nil:
			return
		}
		size := len(item.Event.Data()) + eventCost
		b.mu.Lock()
		full := b.grow(rec, size)
		b.mu.Unlock()
		if held := rec.add(item.Event, size); full || held > b.rules.turnBytes {
			err = errLarge
			return
		}
	}
}

// grow counts more bytes of a turn, and reports whether they are too many. The caller holds the lock.
func (b *Buffered) grow(rec *recording, size int) (full bool) {
	b.bytes += size
	b.shares.add(rec, 0, size)
	share := max(b.rules.bytes/4, b.rules.turnBytes)
	over := func() bool { return b.shares.callers[rec.caller].bytes > share }
	for over() && b.evict(func(r *recording) bool { return r.caller == rec.caller }) {
		continue
	}
	for b.bytes > b.rules.bytes && b.evict(anyone) {
		continue
	}
	return over() || b.bytes > b.rules.bytes
}

// eventCost is the estimated memory of an event in addition to its data, in bytes.
const eventCost = 160
