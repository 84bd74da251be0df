package invoke

import (
	"sync"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// hub indexes the turns of the records that one follower reads, and distributes the records to the requests that wait for
// their sessions. Both happen under one lock: when a request begins to wait, all records that it does not receive are in the
// index.
type hub struct {
	events   topics.Topic[topics.AgentEvent]
	outputs  topics.Topic[topics.Output]
	messages string // the topic of the messages
	limit    int    // maximum bytes in an inbox
	clock    processors.Clock

	mu       sync.Mutex
	sessions map[string]map[*inbox]struct{}
	index    *turnIndex
}

// sessionTurns is how many turns of a session are indexed.
const sessionTurns = 256

func newHub(c topics.Catalog, r pipelineRules) *hub {
	return &hub{
		events: c.AgentEvents, outputs: c.MessageOutput, messages: c.MessageInput.Name(), limit: r.waiting, clock: r.clock,
		sessions: map[string]map[*inbox]struct{}{}, index: newTurnIndex(r.lookback, sessionTurns, r.turns),
	}
}

// sessionRecord is a record for the requests of a session. Either event or failed is set.
type sessionRecord struct {
	partition int32
	offset    int64
	at        time.Time // the record's timestamp
	past      bool      // read by a replay
	event     *topics.AgentEvent
	failed    *topics.Output
}

// handle is called by the follower for each record.
func (h *hub) handle(r processors.Inbound) {
	s, known := h.sightingOf(r)
	l, ok, decoded := sessionRecord{}, false, h.waiting(string(r.Key))
	if decoded {
		l, ok = h.read(r)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if known {
		h.index.add(s, h.clock.Now())
	}
	boxes := h.sessions[string(r.Key)]
	if !decoded && len(boxes) > 0 { // a request has begun to wait in the meantime
		l, ok = h.read(r)
	}
	if !ok {
		return
	}
	for box := range boxes {
		box.put(l, len(r.Value), h.limit)
	}
}

func (h *hub) waiting(session string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sessions[session]) > 0
}

// learn adds an earlier record to the index.
func (h *hub) learn(r processors.Inbound) {
	s, ok := h.sightingOf(r)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.index.add(s, h.clock.Now())
}

// accepted adds a request of this process to the index.
func (h *hub) accepted(session, request string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock.Now()
	h.index.add(sighting{session: session, request: request, at: now}, now)
}

// read decodes a record. Records that cannot be decoded are skipped; the fold group dead-letters them.
func (h *hub) read(r processors.Inbound) (sessionRecord, bool) {
	switch {
	case r.Value == nil:
	case r.Topic == h.events.Name():
		d := h.events.Codec().Unmarshal(r.Value)
		e := d.Value
		return sessionRecord{partition: r.Partition, offset: r.Offset, at: r.Timestamp, event: &e}, d.Err == nil && e.SessionID == string(r.Key)
	case r.Topic == h.outputs.Name():
		d := h.outputs.Codec().Unmarshal(r.Value)
		o := d.Value
		return sessionRecord{partition: r.Partition, offset: r.Offset, at: r.Timestamp, failed: &o}, d.Err == nil && o.Error != nil
	}
	return sessionRecord{}, false
}

// open starts to collect a session's records, and returns what the index has about a turn: nil if it has nothing. The caller
// must call close.
func (h *hub) open(session, id string) (*inbox, *indexedTurn) {
	box := &inbox{arrived: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sessions[session] == nil {
		h.sessions[session] = map[*inbox]struct{}{}
	}
	h.sessions[session][box] = struct{}{}
	return box, h.find(session, id)
}

// lookup returns what the index has about a turn; nil if it has nothing.
func (h *hub) lookup(session, id string) *indexedTurn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.find(session, id)
}

func (h *hub) find(session, id string) *indexedTurn {
	t := h.index.find(session, id)
	if t == nil {
		return nil
	}
	known := *t
	known.place = nil
	return &known
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
