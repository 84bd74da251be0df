package invoke

import (
	"slices"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// hub indexes the turns of the records that one follower reads, and distributes the records to the requests that wait for
// their sessions. Both happen under one lock: when a request begins to wait, all records that it does not receive are in the
// index.
type hub struct {
	topics topics.Catalog
	limit  int // maximum bytes in an inbox
	clock  processors.Clock

	mu       sync.Mutex
	sessions map[string]map[*inbox]struct{}
	index    *turnIndex
	gates    *gateIndex // nil without PipelineConfig.Gates
}

// sessionTurns is how many turns of a session are indexed.
const sessionTurns = 256

func newHub(c topics.Catalog, config PipelineConfig) *hub {
	h := &hub{
		topics: c, limit: config.WaitingBytes, clock: config.Clock,
		sessions: map[string]map[*inbox]struct{}{}, index: newTurnIndex(config.Lookback, sessionTurns, config.IndexedTurns),
	}
	if config.Gates {
		h.gates = newGateIndex(config.Lookback, sessionGates, config.IndexedTurns)
	}
	return h
}

// sessionRecord is a record for the requests of a session. Either event, end, failed, answered or outcome is set.
type sessionRecord struct {
	partition int32
	offset    int64
	at        time.Time // the record's timestamp
	past      bool      // read by a replay
	event     *topics.AgentEvent
	end       *turnEnd // the fold group has ended a turn of the session
	failed    *topics.Output
	answered  string // the request that has its answer on message-output
	outcome   bool   // a gate of the session has an outcome, which is in the index
}

// handle is called for each record that the follower reads, and for those since the look-back before requests are answered.
func (h *hub) handle(r processors.Inbound) {
	if r.Topic == h.topics.GateRequests.Name() || r.Topic == h.topics.GateOutcomes.Name() {
		h.handleGate(r)
		return
	}
	s, known := sightingIn(&h.topics, r)
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

// handleGate adds a record of a gate to the index.
func (h *hub) handleGate(r processors.Inbound) {
	g, ok := gateIn(&h.topics, r)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gates.add(g, h.clock.Now())
	if g.outcome == nil {
		return
	}
	for box := range h.sessions[g.session] {
		box.put(sessionRecord{outcome: true}, eventCost, h.limit)
	}
}

// outcome returns the outcome of a gate, nil if none is known.
func (h *hub) outcome(session, gate string) *topics.GateOutcome {
	h.mu.Lock()
	defer h.mu.Unlock()
	if g := h.gates.find(session, gate); g != nil {
		return g.outcome
	}
	return nil
}

// waits returns the ID of the oldest open gate of a session's turns, empty if there is none.
func (h *hub) waits(session string) string {
	if h.gates == nil {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.gates.sessions[session]
	if i := slices.IndexFunc(list, func(g *knownGate) bool { return g.outcome == nil }); i >= 0 {
		return list[i].gate
	}
	return ""
}

// mayWait returns the turns of a session that may wait for a decision: those with gates, and the last ones that had a record.
// A client can answer before the requests of its gates were written.
func (h *hub) mayWait(session string) (list []indexedTurn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	begun := slices.DeleteFunc(slices.Clone(h.index.sessions[session]), func(t *indexedTurn) bool { return t.first < 0 })
	slices.SortStableFunc(begun, func(a, b *indexedTurn) int { return b.touched.Compare(a.touched) })
	add := func(t *indexedTurn) {
		if len(list) < waitingTurns && !slices.ContainsFunc(list, func(o indexedTurn) bool { return o.turn == t.turn }) {
			list = append(list, *t)
		}
	}
	for _, t := range begun[:min(len(begun), latestTurns)] {
		add(t)
	}
	for _, id := range h.gates.turns(session) {
		if t := h.index.find(session, id); t != nil && t.turn == id && t.first >= 0 {
			add(t)
		}
	}
	return list
}

const (
	// waitingTurns is how many turns of a session are read to find the interaction that an answer decides, and latestTurns how
	// many of them because of their last record.
	waitingTurns = 8
	latestTurns  = 3
)

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
	case r.Topic == h.topics.AgentEvents.Name():
		d := h.topics.AgentEvents.Codec().Unmarshal(r.Value)
		e := d.Value
		return sessionRecord{partition: r.Partition, offset: r.Offset, at: r.Timestamp, event: &e}, d.Err == nil && e.SessionID == string(r.Key)
	case r.Topic == h.topics.BatchMessages.Name():
		s, ok := sightingIn(&h.topics, r)
		return sessionRecord{end: s.end}, ok
	case r.Topic == h.topics.MessageOutput.Name():
		d := h.topics.MessageOutput.Codec().Unmarshal(r.Value)
		o, l := d.Value, sessionRecord{partition: r.Partition, offset: r.Offset, at: r.Timestamp}
		switch {
		case d.Err != nil:
		case o.Error != nil:
			l.failed = &o
			return l, true
		case o.RequestID != nil:
			l.answered = *o.RequestID
			return l, true
		}
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
