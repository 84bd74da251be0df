package invoke

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
)

// framing writes a turn in one of the stream formats. It appends to what it is given.
type framing interface {
	begin(dst []byte) []byte
	// event appends an event's frames; a muted one is one that the client has.
	event(dst []byte, item Item, muted bool) []byte
	keepalive(dst []byte) []byte
	end(dst []byte, o outcome) []byte
}

const (
	// ahead is how many events are read before they are written.
	ahead = 64
	// fullBuffer is how much is gathered before it is written although more is there.
	fullBuffer = 32 << 10
)

// step is an event, or the end.
type step struct {
	item Item
	done *outcome
}

// stream answers with the events as they come, and reports whether it came to their end. After the client has gone
// nothing is written any more, and the agent's context has ended.
func (c *call) stream(ctx context.Context, cancel context.CancelFunc, t *turn) (whole bool) {
	f := c.framing()
	c.streamHead(t)
	c.begun = true
	steps := make(chan step, ahead)
	go c.pump(ctx, t, steps) // the turn is its from here on
	defer func() {
		cancel()
		for range steps { // until the pump has ended
		}
		c.close(t)
	}()
	out := &writer{call: c, buffer: f.begin(nil)}
	quiet := newSilence(c.door.rules.clock, c.door.rules.keepalive)
	defer quiet.stop()
	for out.flush() {
		select {
		case s, ok := <-steps:
			switch {
			case !ok:
				return false
			case !c.take(f, s, steps, out):
				return out.whole
			}
			quiet.broken()
		case <-quiet.c():
			if quiet.over() {
				out.buffer = f.keepalive(out.buffer)
				quiet.broken()
			}
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// take gathers an event and those that are there behind it; false after the last.
func (c *call) take(f framing, s step, steps <-chan step, out *writer) bool {
	for {
		if s.done != nil {
			c.report(s.done.err)
			out.buffer = f.end(out.buffer, *s.done)
			out.whole = out.flush()
			return false
		}
		has := c.resumes && s.item.ID.Attempt == c.last.Attempt && s.item.ID.Seq <= c.last.Seq
		out.buffer = f.event(out.buffer, s.item, has)
		if len(out.buffer) > fullBuffer {
			return true
		}
		var ok bool
		select {
		case s, ok = <-steps:
			if !ok {
				return false // the client has gone
			}
		default:
			return true
		}
	}
}

// report logs a failure that the client is told nothing about.
func (c *call) report(err error) {
	var known *Error
	var superseded *Superseded
	if err != nil && !errors.As(err, &known) && !errors.As(err, &superseded) {
		c.door.rules.logger.Error("invoke: agent failed", zap.Error(err))
	}
}

// pump reads the turn until its end, or until ctx ends. It never writes to the client.
func (c *call) pump(ctx context.Context, t *turn, steps chan<- step) {
	defer close(steps)
	send := func(s step) bool {
		select {
		case steps <- s:
			return true
		case <-ctx.Done():
			return false
		}
	}
	var err error
	defer func() {
		if thrown := recover(); thrown != nil {
			err = fmt.Errorf("%w: %T", errPanic, thrown) // what was thrown may quote an event
		}
		if ctx.Err() == nil && err != nil {
			o := t.outcome(err)
			send(step{done: &o})
		}
	}()
	for {
		var item Item
		if item, err = t.next(ctx); err != nil {
			return
		}
		if !send(step{item: item}) {
			return
		}
	}
}

func (c *call) streamHead(t *turn) {
	c.head()
	h := c.w.Header()
	c.turnHead(t)
	h.Set("Content-Type", string(NDJSON))
	if c.answer == SSE {
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		if c.vercel {
			c.vercelHead()
			h.Set(headerVercelStream, "v1")
		}
	}
	// A proxy that gathers the answer would hold events up.
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	c.w.WriteHeader(http.StatusOK)
}

func (c *call) framing() framing {
	switch {
	case c.answer != SSE:
		return &ndjson{}
	case c.vercel:
		id := c.continuation
		if id == "" {
			id = "msg-" + c.trace.TraceID
		}
		return newVercel(id, c.session, c.trace.TraceID, c.resumes && c.last.Seq > 0)
	}
	return &sse{}
}

// writer gathers frames and hands them to the client.
type writer struct {
	call   *call
	buffer []byte
	whole  bool // the end was written
}

// flush writes what was gathered and pushes it out; false where the client takes no more.
func (w *writer) flush() bool {
	if w.call.r.Context().Err() != nil {
		return false
	}
	w.call.deadline()
	if _, err := w.call.w.Write(w.buffer); err != nil {
		return false
	}
	w.buffer = w.buffer[:0]
	err := w.call.wire.Flush()
	return err == nil || errors.Is(err, http.ErrNotSupported)
}

// silence measures how long nothing was written. Its ticker is made anew only where a tick finds that it was too soon.
type silence struct {
	clock  clock.Clock
	limit  time.Duration
	since  time.Time
	ticker clock.Ticker // nil: no keepalives
}

func newSilence(c clock.Clock, limit time.Duration) *silence {
	s := &silence{clock: c, limit: limit}
	if limit > 0 {
		s.since, s.ticker = c.Now(), c.NewTicker(limit)
	}
	return s
}

func (s *silence) c() <-chan time.Time {
	if s.ticker == nil {
		return nil
	}
	return s.ticker.C()
}

// broken says that something was written.
func (s *silence) broken() {
	if s.ticker != nil {
		s.since = s.clock.Now()
	}
}

// over reports, after a tick, whether the silence has lasted long enough; if not, the next tick comes when it has.
func (s *silence) over() bool {
	left := s.limit - s.clock.Now().Sub(s.since)
	s.ticker.Stop()
	if left > 0 {
		s.ticker = s.clock.NewTicker(left)
		return false
	}
	s.ticker = s.clock.NewTicker(s.limit)
	return true
}

func (s *silence) stop() {
	if s.ticker != nil {
		s.ticker.Stop()
	}
}
