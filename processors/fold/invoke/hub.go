package invoke

import (
	"context"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// hub distributes the records that one follower reads to the requests that wait for their sessions.
type hub struct {
	events  topics.Topic[topics.AgentEvent]
	outputs topics.Topic[topics.Output]
	limit   int // maximum bytes in an inbox

	mu       sync.RWMutex
	sessions map[string]map[*inbox]struct{}
}

// letter is a record for the requests of a session. Either event or failed is set.
type letter struct {
	offset int64
	at     time.Time // the record's timestamp
	past   bool      // read by a replay
	event  *topics.AgentEvent
	failed *topics.Output
}

// handle is called by the follower for each record.
func (h *hub) handle(r processors.Inbound) {
	h.mu.RLock()
	waiting := len(h.sessions[string(r.Key)])
	h.mu.RUnlock()
	if waiting == 0 {
		return
	}
	l, ok := h.read(r)
	if !ok {
		return
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	for box := range h.sessions[string(r.Key)] {
		box.put(l, len(r.Value), h.limit)
	}
}

// read decodes a record. Records that cannot be decoded are skipped; the fold group dead-letters them.
func (h *hub) read(r processors.Inbound) (letter, bool) {
	switch {
	case r.Value == nil:
	case r.Topic == h.events.Name():
		d := h.events.Codec().Unmarshal(r.Value)
		e := d.Value
		return letter{offset: r.Offset, at: r.Timestamp, event: &e}, d.Err == nil && e.SessionID == string(r.Key)
	case r.Topic == h.outputs.Name():
		d := h.outputs.Codec().Unmarshal(r.Value)
		o := d.Value
		return letter{offset: r.Offset, at: r.Timestamp, failed: &o}, d.Err == nil && o.Error != nil
	}
	return letter{}, false
}

// open starts to collect a session's records. The caller must call close.
func (h *hub) open(session string) *inbox {
	box := &inbox{arrived: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sessions[session] == nil {
		h.sessions[session] = map[*inbox]struct{}{}
	}
	h.sessions[session][box] = struct{}{}
	return box
}

func (h *hub) close(session string, box *inbox) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions[session], box)
	if len(h.sessions[session]) == 0 {
		delete(h.sessions, session)
	}
}

// inbox is the queue of one request.
type inbox struct {
	arrived chan struct{} // has an element after a put

	mu       sync.Mutex
	letters  []sized
	bytes    int
	overflow bool
}

type sized struct {
	letter
	size int
}

// errSlow ends a stream whose inbox is full. The client can resume.
var errSlow = &Error{Code: "slow", Text: "events came faster than they were taken; read on from the last one"}

func (b *inbox) put(l letter, size, limit int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.overflow = b.overflow || b.bytes+size > limit; !b.overflow {
		b.letters = append(b.letters, sized{l, size})
		b.bytes += size
	}
	select {
	case b.arrived <- struct{}{}:
	default:
	}
}

// take returns the next letter; ok is false if there is none.
func (b *inbox) take() (l letter, ok bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.letters) == 0 {
		if b.overflow {
			return letter{}, false, errSlow
		}
		return letter{}, false, nil
	}
	first := b.letters[0]
	b.letters[0] = sized{}
	b.letters = b.letters[1:]
	b.bytes -= first.size
	return first.letter, true, nil
}

// replay reads the earlier records of a session again. Then next is the offset at which the live events continue.
type replay struct {
	letters chan letter
	next    int64 // set when letters is closed
	err     error // set when letters is closed
}

func (h *hub) replay(
	ctx context.Context, f *processors.Follower, session string, since time.Time, slots chan struct{},
) *replay {
	r := &replay{letters: make(chan letter, 16)}
	go func() {
		defer close(r.letters)
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-ctx.Done():
			r.err = ctx.Err()
			return
		}
		take := func(ctx context.Context, in processors.Inbound) bool {
			l, ok := h.read(in)
			if !ok {
				return true
			}
			l.past = true
			select {
			case r.letters <- l:
				return true
			case <-ctx.Done():
				return false
			}
		}
		if r.next, r.err = f.Replay(ctx, h.events.Name(), session, since, take); r.err == nil {
			_, r.err = f.Replay(ctx, h.outputs.Name(), session, since, take)
		}
	}()
	return r
}
