package invoke

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/processors/fold/folder"
)

// recording holds the events of a turn.
type recording struct {
	key    turnKey
	caller string // key of the caller's limits

	mu      sync.Mutex
	attempt uint64 // from 1
	events  []folder.Event
	size    int
	changed chan struct{} // closed and replaced at every change
	done    bool
	err     error // the error that ended the run, or io.EOF
	end     folder.End
	at      time.Time
	asks    asks
}

func newRecording(r Request, continues bool) *recording {
	rec := &recording{
		key: turnKey{r.SessionID, r.Trace.TraceID + "-" + r.Trace.SpanID}, caller: r.callerKey,
		attempt: 1, changed: make(chan struct{}), asks: asks{settled: make(chan struct{})},
	}
	if continues {
		rec.asks.began, rec.asks.kept = r, sizeOfRequest(r)
	}
	return rec
}

func (r *recording) add(e folder.Event, size int) (held int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	r.size += size
	r.announce()
	return r.size
}

// restart drops the events of the older attempt and returns their size.
func (r *recording) restart() (freed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	freed, r.attempt, r.events, r.size = r.size, r.attempt+1, nil, 0
	r.asks.seq = 0
	r.announce()
	return freed
}

func (r *recording) announce() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// close ends the turn and returns the size of what it no longer keeps.
func (r *recording) close(err error, end folder.End, now time.Time) (freed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settle(err, end, now)
	return r.forgetRequest()
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

// ended reports whether the turn has ended, and when. A paused turn has not.
func (r *recording) ended() (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at, r.done && !r.asks.waits
}

// waiting reports whether the turn is paused.
func (r *recording) waiting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asks.waits
}

// reaches reports whether a client can have received the event: it was recorded, or belongs to an older attempt, or is the
// done event that the door adds after the end of a run.
func (r *recording) reaches(id EventID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent := uint64(len(r.events))
	if r.done && !r.asks.waits {
		sent++
	}
	return id.Attempt >= 1 && (id.Attempt < r.attempt || id.Attempt == r.attempt && id.Seq <= sent)
}

func (r *recording) held() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size + r.asks.kept
}

// playback reads a recording from the beginning of an attempt.
type playback struct {
	rec     *recording
	attempt uint64
	next    int
	end     folder.End
	from    EventID // of a client that continued the turn: it has the events up to this one
}

// After implements Continuing.
func (p *playback) After() EventID { return p.from }

// TurnID implements Named.
func (p *playback) TurnID() string { return p.rec.key.turn }

// Next implements Stream.
func (p *playback) Next(ctx context.Context) (Item, error) {
	for {
		item, wait, err := p.look()
		if wait == nil {
			return item, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return Item{}, ctx.Err()
		}
	}
}

// look returns the next event, the end, or a channel to wait for.
func (p *playback) look() (item Item, wait <-chan struct{}, err error) {
	r := p.rec
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case p.attempt != r.attempt:
		p.attempt, p.next = r.attempt, 0
		return Item{}, nil, &Superseded{By: EventID{Turn: r.key.turn, Attempt: r.attempt}}
	case p.next < len(r.events):
		p.next++
		id := EventID{Turn: r.key.turn, Attempt: p.attempt, Seq: uint64(p.next)}
		return Item{ID: id, Event: r.events[p.next-1]}, nil, nil
	case r.done:
		p.end = r.end
		p.end.Decided = r.asks.decided(int64(r.attempt))
		return Item{}, nil, r.err
	}
	return Item{}, r.changed, nil
}

// End implements Stream.
func (p *playback) End() folder.End { return p.end }

// Close implements Stream.
func (*playback) Close() error { return nil }
