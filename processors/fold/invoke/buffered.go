package invoke

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors/fold/folder"
)

// Buffered is an Agent whose runs continue when the client disconnects. It keeps their events in memory, so that a client
// that lost its connection can resume in the same process. A turn that asks for an approval ends with its run, as without
// the buffer. Create it with NewBuffered and stop it with Close. It is safe for concurrent use.
type Buffered struct {
	agent  Agent
	config BufferConfig

	ctx  context.Context // cancelled by Close
	stop context.CancelFunc
	runs sync.WaitGroup

	mu      sync.Mutex // also guards the recordings
	closed  bool
	order   []*recording // the oldest first
	bytes   int
	callers map[string]int // bytes of each caller; those that have none are not in the map
}

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
	b := &Buffered{agent: a, config: c, callers: map[string]int{}}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b, nil
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

// Invoke implements Agent. The run continues when ctx is done.
func (b *Buffered) Invoke(ctx context.Context, r Request) (Stream, error) {
	rec := &recording{
		session: r.SessionID, turn: r.Trace.TraceID + "-" + r.Trace.SpanID, caller: r.callerKey,
		attempt: 1, changed: make(chan struct{}),
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
	return &playback{buffer: b, rec: rec, attempt: 1}, nil
}

// Resume implements Resumer.
func (b *Buffered) Resume(_ context.Context, r Request, last EventID) (Stream, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget()
	for _, rec := range b.order {
		if rec.session == r.SessionID && rec.turn == last.Turn && rec.reaches(last) {
			return &playback{buffer: b, rec: rec, attempt: last.Attempt}, nil
		}
	}
	return nil, ErrGone
}

// record stores the events of a run until it ends.
func (b *Buffered) record(ctx context.Context, s Stream, rec *recording) {
	var err error
	defer func() {
		if thrown := recover(); thrown != nil {
			err = fmt.Errorf("%w: %T", errPanic, thrown)
		}
		end, ended := endAndClose(err, s)
		b.mu.Lock()
		defer b.mu.Unlock()
		rec.end, rec.err, rec.at = end, ended, b.config.Clock.Now()
		rec.announce()
	}()
	for err == nil {
		var item Item
		item, err = s.Next(ctx)
		var superseded *Superseded
		switch {
		case errors.As(err, &superseded) && ctx.Err() == nil:
			b.restart(rec)
			err = nil
		case err == nil:
			err = b.add(rec, item.Event)
		}
	}
}

// endAndClose closes a run's stream and returns its end.
func endAndClose(err error, s Stream) (end folder.End, ended error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			ended = fmt.Errorf("%w: %T", errPanic, thrown)
		}
	}()
	if errors.Is(err, io.EOF) {
		end = s.End()
	}
	if e := s.Close(); e != nil && errors.Is(err, io.EOF) {
		err = e
	}
	return end, err
}
