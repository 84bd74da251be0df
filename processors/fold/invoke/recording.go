package invoke

import (
	"context"
	"time"

	"github.com/turntable-streams/turntable/processors/fold/folder"
)

// recording holds the events of one attempt at a turn.
type recording struct {
	session, turn string
	caller        string // key of the caller's limits

	attempt uint64 // from 1
	events  []folder.Event
	size    int           // bytes that are counted in the buffer
	changed chan struct{} // closed and replaced at every change

	err error // the error that ended the run, or io.EOF; nil while it runs
	end folder.End
	at  time.Time
}

func (r *recording) announce() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// reaches reports whether a client can have received the event: it was recorded, or belongs to an older attempt, or is the
// done event that the door adds after the end of a run.
func (r *recording) reaches(id EventID) bool {
	sent := uint64(len(r.events))
	if r.err != nil {
		sent++
	}
	return id.Attempt >= 1 && (id.Attempt < r.attempt || id.Attempt == r.attempt && id.Seq <= sent)
}

// playback reads a recording from the beginning of an attempt.
type playback struct {
	buffer  *Buffered
	rec     *recording
	attempt uint64
	next    int
	end     folder.End
}

// TurnID implements Named.
func (p *playback) TurnID() string { return p.rec.turn }

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
	p.buffer.mu.Lock()
	defer p.buffer.mu.Unlock()
	r := p.rec
	switch {
	case p.attempt != r.attempt:
		p.attempt, p.next = r.attempt, 0
		return Item{}, nil, &Superseded{By: EventID{Turn: r.turn, Attempt: r.attempt}}
	case p.next < len(r.events):
		p.next++
		id := EventID{Turn: r.turn, Attempt: p.attempt, Seq: uint64(p.next)}
		return Item{ID: id, Event: r.events[p.next-1]}, nil, nil
	case r.err != nil:
		p.end = r.end
		return Item{}, nil, r.err
	}
	return Item{}, r.changed, nil
}

// End implements Stream.
func (p *playback) End() folder.End { return p.end }

// Close implements Stream.
func (*playback) Close() error { return nil }
