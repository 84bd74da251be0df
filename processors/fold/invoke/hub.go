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

// sessionRecord is a record for the requests of a session. Either event or failed is set.
type sessionRecord struct {
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
func (h *hub) read(r processors.Inbound) (sessionRecord, bool) {
	switch {
	case r.Value == nil:
	case r.Topic == h.events.Name():
		d := h.events.Codec().Unmarshal(r.Value)
		e := d.Value
		return sessionRecord{offset: r.Offset, at: r.Timestamp, event: &e}, d.Err == nil && e.SessionID == string(r.Key)
	case r.Topic == h.outputs.Name():
		d := h.outputs.Codec().Unmarshal(r.Value)
		o := d.Value
		return sessionRecord{offset: r.Offset, at: r.Timestamp, failed: &o}, d.Err == nil && o.Error != nil
	}
	return sessionRecord{}, false
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
	records  []sized
	bytes    int
	overflow bool
}

type sized struct {
	sessionRecord
	size int
}

// errSlow ends a stream whose inbox is full. The client can resume.
var errSlow = &Error{Code: "slow", Text: "the client reads too slowly; resume after the last event"}

func (b *inbox) put(l sessionRecord, size, limit int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.overflow = b.overflow || b.bytes+size > limit; !b.overflow {
		b.records = append(b.records, sized{l, size})
		b.bytes += size
	}
	select {
	case b.arrived <- struct{}{}:
	default:
	}
}

// take returns the next record; ok is false if there is none.
func (b *inbox) take() (l sessionRecord, ok bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.records) == 0 {
		if b.overflow {
			return sessionRecord{}, false, errSlow
		}
		return sessionRecord{}, false, nil
	}
	first := b.records[0]
	b.records[0] = sized{}
	b.records = b.records[1:]
	b.bytes -= first.size
	return first.sessionRecord, true, nil
}

// replay reads the earlier records of a session again. Then next is the offset at which the live events continue.
type replay struct {
	records chan sessionRecord
	next    int64 // set when records is closed
	err     error // set when records is closed
}

func (h *hub) replay(
	ctx context.Context, f *processors.Follower, session string, since time.Time, slots chan struct{},
) *replay {
	r := &replay{records: make(chan sessionRecord, 16)}
	go func() {
		defer close(r.records)
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
			case r.records <- l:
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
