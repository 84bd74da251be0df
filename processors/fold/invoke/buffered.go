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
	"github.com/turntable-streams/turntable/processors/auth"
)

// Buffered is an Agent whose runs continue when the client disconnects. It keeps their events in memory, so that a client
// that lost its connection can resume in the same process. Create it with NewBuffered and stop it with Close. It is safe
// for concurrent use.
type Buffered struct {
	agent     Agent
	continuer Continuer // nil if turns of the agent cannot continue
	rules     bufferRules

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
	keep, pause             time.Duration
	exclusive               bool // no new turn while one of the session is paused
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

// WithPauseTimeout sets how long a paused turn of a Continuer can be answered (default 10 min, more than 0). Then it ends as
// expired, and answers get 409.
func WithPauseTimeout(d time.Duration) BufferOption { return func(r *bufferRules) { r.pause = d } }

// WithRefuseWhilePaused answers a request that is no answer with 409 while a turn of its session is paused (default: it
// begins another turn, and the paused one can still be answered).
func WithRefuseWhilePaused() BufferOption { return func(r *bufferRules) { r.exclusive = true } }

// WithBufferClock sets the clock for WithBufferTime and WithPauseTimeout (default: the system clock).
func WithBufferClock(c processors.Clock) BufferOption { return func(r *bufferRules) { r.clock = c } }

// defaultShare is how many turns a session, or a caller of a small buffer, can have.
const defaultShare = 16

// NewBuffered returns an Agent that buffers the turns of a. A turn's id is made of the request's trace and span ids. It
// fails with ErrDoor if a is nil or an option is out of range.
func NewBuffered(a Agent, opts ...BufferOption) (*Buffered, error) {
	r := bufferRules{turns: 1000, turnBytes: 16 << 20, bytes: 256 << 20, keep: 5 * time.Minute, pause: 10 * time.Minute, clock: clock.System()}
	for _, opt := range opts {
		opt(&r)
	}
	if r.caller == 0 && r.session == 0 {
		r.caller, r.session = max(r.turns/4, defaultShare), defaultShare
	}
	if a == nil || r.caller < 1 || r.session < 1 || r.turns < 1 || r.turnBytes < 1 || r.bytes < r.turnBytes || r.keep < 0 || r.pause <= 0 || r.clock == nil {
		return nil, fmt.Errorf("%w: a buffer needs an agent, a clock and limits above zero", ErrDoor)
	}
	b := &Buffered{agent: a, rules: r, turns: map[turnKey]*recording{}, shares: newShares()}
	b.continuer, _ = a.(Continuer)
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

// Answers implements Answerer: it reports whether the wrapped agent is a Continuer.
func (b *Buffered) Answers() bool { return b.continuer != nil }

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
	errWaits  = &Error{
		Status: http.StatusConflict, Type: TypeUnknown, Code: "paused", Text: "a turn of the session is paused; answer it first",
	}
	errLarge = &Error{Code: "too_large", Text: "the turn is too large to be kept"}
)

// Invoke implements Agent. The run continues when ctx is done. With a Continuer, a request that answers interactions of a
// paused turn of the session continues that turn, if the caller has the right auth.Answer: see Approvals of embedded agents
// in the package documentation.
func (b *Buffered) Invoke(ctx context.Context, r Request) (Stream, error) {
	if b.continuer != nil {
		if stream, err := b.answer(ctx, r); stream != nil || err != nil {
			return stream, err
		}
	}
	if b.continuer != nil && !r.Caller.Can(auth.Write) { // the door also admits callers who may answer only
		return nil, errForbidden
	}
	rec := newRecording(r, b.continuer != nil)
	if err := b.enter(rec); err != nil {
		return nil, err
	}
	begin := func(run context.Context) (Stream, error) { return b.agent.Invoke(run, r) }
	if err := b.run(ctx, rec, begin, func() { b.leave(rec) }); err != nil {
		return nil, err
	}
	return &playback{rec: rec, attempt: 1}, nil
}

// run begins a run and records it. If the run does not begin, it calls undo. The caller has added the run to b.runs.
func (b *Buffered) run(ctx context.Context, rec *recording, begin func(context.Context) (Stream, error), undo func()) error {
	defer b.runs.Done()
	// The run keeps the values of the caller's context but not its cancellation.
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unlink := context.AfterFunc(b.ctx, cancel)
	began := false
	defer func() { // also if the agent panics
		if !began {
			unlink()
			cancel()
			undo()
		}
	}()
	stream, err := begin(run)
	if err != nil {
		return err
	}
	began = true
	b.runs.Go(func() {
		defer cancel()
		defer unlink()
		b.record(run, stream, rec)
	})
	return nil
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

// record stores the events of a run until it ends.
func (b *Buffered) record(ctx context.Context, s Stream, rec *recording) {
	var err error
	defer func() {
		if thrown := recover(); thrown != nil {
			err = fmt.Errorf("%w: %T", errPanic, thrown)
		}
		b.end(err, s, rec)
	}()
	for {
		var item Item
		item, err = s.Next(ctx)
		var superseded *Superseded
		switch {
		case errors.As(err, &superseded) && ctx.Err() == nil:
			freed := rec.restart()
			b.mu.Lock()
			b.count(rec, -freed)
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
