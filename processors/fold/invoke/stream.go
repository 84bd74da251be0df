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

// framing encodes a turn in one of the stream formats. Its methods append to dst.
type framing interface {
	begin(dst []byte) []byte
	// event appends an event's frames. A muted event was received by the client before: it is not appended.
	event(dst []byte, item Item, muted bool) []byte
	keepalive(dst []byte) []byte
	end(dst []byte, o outcome) []byte
}

const (
	// readAhead is how many events are read ahead of the writer.
	readAhead = 64
	// fullBuffer is the size in bytes at which the buffer is written although more events are available.
	fullBuffer = 32 << 10
)

// step is an event or the end of the turn.
type step struct {
	item Item
	done *outcome
}

// stream answers with the events as they arrive and reports whether it has written the end. When the client disconnects,
// it stops writing and cancels the agent's context. When reading ends, because the caller's credential has expired, it
// writes an end that says so.
func (c *exchange) stream(ctx, reading context.Context, cancel context.CancelFunc, t *turn) (whole bool) {
	f := c.framing()
	c.streamHead(t)
	c.begun = true
	steps := make(chan step, readAhead)
	go c.pump(ctx, reading, t, steps) // from here on, only pump uses the turn
	defer func() {
		cancel()
		for range steps { // wait until pump has ended
		}
		c.close(t)
	}()
	out := &writer{exchange: c, buffer: f.begin(nil)}
	quiet := newSilence(c.door.config.Clock, c.door.config.Keepalive)
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

// take appends an event and all further events that are available to the buffer; false after the last.
func (c *exchange) take(f framing, s step, steps <-chan step, out *writer) bool {
	for {
		if s.done != nil {
			c.report(s.done.err)
			out.buffer = f.end(out.buffer, *s.done)
			out.whole = out.flush()
			return false
		}
		has := (c.resumes || c.continues) && s.item.ID.Attempt == c.last.Attempt && s.item.ID.Seq <= c.last.Seq
		out.buffer = f.event(out.buffer, s.item, has)
		if len(out.buffer) > fullBuffer {
			return true
		}
		var ok bool
		select {
		case s, ok = <-steps:
			if !ok {
				return false // the client has disconnected
			}
		default:
			return true
		}
	}
}

// report logs an error whose text is not reported to the client.
func (c *exchange) report(err error) {
	var reported *Error
	var superseded *Superseded
	if err != nil && !errors.As(err, &reported) && !errors.As(err, &superseded) {
		c.door.config.Logger.Error("invoke: agent failed", zap.Error(err))
	}
}

// pump reads the turn until its end, or until ctx is done. It does not write to the client.
func (c *exchange) pump(ctx, reading context.Context, t *turn, steps chan<- step) {
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
			err = fmt.Errorf("%w: %T", errPanic, thrown) // the panic value may contain parts of an event
		}
		if ctx.Err() == nil && err != nil {
			o := t.outcome(err)
			send(step{done: &o})
		}
	}()
	for {
		var item Item
		// An agent that always has an event may not look at its context. Events that are queued have the ID of the end.
		if len(t.queue) == 0 && reading.Err() != nil {
			err = ended(reading, reading.Err())
			return
		}
		if item, err = t.next(reading); err != nil {
			err = ended(reading, err)
			return
		}
		if !send(step{item: item}) {
			return
		}
	}
}

func (c *exchange) streamHead(t *turn) {
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
	// Proxies must not buffer the response, which would delay events.
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	c.w.WriteHeader(http.StatusOK)
}

func (c *exchange) framing() framing {
	switch {
	case c.answer != SSE:
		return &ndjson{}
	case c.vercel:
		id := c.continuation
		if id == "" {
			id = "msg-" + c.trace.TraceID
		}
		return &vercelForm{
			message: id, session: c.session, trace: c.trace.TraceID, projection: newProjection(),
			resumed: c.resumes && c.last.Seq > 0, continued: c.continues, same: c.continuation != "",
		}
	}
	return &sse{}
}

// writer buffers frames and writes them to the client.
type writer struct {
	exchange *exchange
	buffer   []byte
	whole    bool // the end was written
}

// flush writes and flushes the buffer; false if the client has disconnected or is too slow.
func (w *writer) flush() bool {
	if w.exchange.r.Context().Err() != nil {
		return false
	}
	w.exchange.deadline()
	if _, err := w.exchange.w.Write(w.buffer); err != nil {
		return false
	}
	w.buffer = w.buffer[:0]
	err := w.exchange.wire.Flush()
	return err == nil || errors.Is(err, http.ErrNotSupported)
}

// silence measures the time since the last write. A write does not reset the ticker: when it ticks too early, a new ticker
// waits for the remaining time.
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

// broken records a write.
func (s *silence) broken() {
	if s.ticker != nil {
		s.since = s.clock.Now()
	}
}

// over reports, after a tick, whether nothing was written for the limit. If not, the next tick comes when the limit is
// reached.
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
