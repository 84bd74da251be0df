package invoke

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors/auth"
)

// Buffered is an Agent whose runs continue when the client disconnects. It keeps their events in memory, so that a client
// that lost its connection can resume in the same process. Create it with NewBuffered and stop it with Close. It is safe
// for concurrent use.
type Buffered struct {
	agent     Agent
	continuer Continuer // nil if turns of the agent cannot continue
	config    BufferConfig

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

// NewBuffered returns an Agent that buffers the turns of a. A turn's id is made of the request's trace and span ids. It
// fails with ErrConfig if a is nil or a field is out of range.
func NewBuffered(a Agent, c BufferConfig) (*Buffered, error) {
	var check bounds.Check
	if a == nil {
		check.Wrong("agent", "is nil")
	}
	c.complete(&check)
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	b := &Buffered{agent: a, config: c, turns: map[turnKey]*recording{}, shares: newShares()}
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
		if held := rec.add(item.Event, size); full || held > b.config.TurnBytes {
			err = errLarge
			return
		}
	}
}
