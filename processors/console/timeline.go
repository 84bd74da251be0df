package console

import (
	"container/list"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// span is something that happened in a turn: from when to when, and what came of it.
type span struct {
	kind   spanKind
	turn   string
	step   string // number of the think step, "" if it is not known
	id     string // what its end names
	parent string // the id of the call that a gate holds back
	name   string
	begin  int64  // Unix ms; 0 if the beginning was not seen
	end    int64  // 0 while it is open
	status string // of the end
}

type spanKind uint8

// The kinds of spans, in the order in which those of a step are shown.
const (
	spanTurn spanKind = iota
	spanStep
	spanCall
	spanGate
	spanDelegation
	spanDelivery
)

var spanNames = [...]string{"turn", "step", "call", "gate", "delegation", "delivery"}

// spansOfSession is how many spans are kept of one session. The oldest are dropped.
const spansOfSession = 2000

// timelines are the spans of the sessions that changed last. It does no I/O and is not safe for concurrent use.
type timelines struct {
	limit, n int
	sessions map[string]*list.Element
	recent   *list.List // of *timeline, that changed last in front
	since    int64      // Unix ms: earlier records were not read
	// purged is when sessions were purged (Unix ms), while records of before are read: they come topic by topic.
	purged map[string]int64
}

type timeline struct {
	session string
	spans   []*span
	dropped int
}

func newTimelines(limit int) *timelines {
	return &timelines{limit: limit, sessions: map[string]*list.Element{}, recent: list.New(), purged: map[string]int64{}}
}

// of returns the spans of a session, nil for none.
func (t *timelines) of(session string) (spans []span, dropped int) {
	e := t.sessions[session]
	if e == nil {
		return nil, 0
	}
	l := e.Value.(*timeline)
	for _, s := range l.spans {
		spans = append(spans, *s)
	}
	return spans, l.dropped
}

// at returns the span of a session that has an ID, which it adds.
func (t *timelines) at(session string, kind spanKind, id string) *span {
	e := t.sessions[session]
	if e == nil {
		e = t.recent.PushFront(&timeline{session: session})
		t.sessions[session] = e
	}
	t.recent.MoveToFront(e)
	l := e.Value.(*timeline)
	for _, s := range slices.Backward(l.spans) {
		if s.kind == kind && s.id == id {
			return s
		}
	}
	s := &span{kind: kind, id: id}
	l.spans = append(l.spans, s)
	t.n++
	if len(l.spans) > spansOfSession {
		l.spans = slices.Delete(l.spans, 0, spansOfSession/10)
		l.dropped += spansOfSession / 10
		t.n -= spansOfSession / 10
	}
	for t.n > t.limit && t.recent.Len() > 1 {
		t.forget(t.recent.Back())
	}
	return s
}

func (t *timelines) forget(e *list.Element) {
	l := t.recent.Remove(e).(*timeline)
	t.n -= len(l.spans)
	delete(t.sessions, l.session)
}

// lost reports whether a session was purged after a record of it.
func (t *timelines) lost(session string, at int64) bool {
	purged, ok := t.purged[session]
	return ok && at <= purged
}

// purge forgets what a session did before a time.
func (t *timelines) purge(session string, at int64) {
	if t.purged != nil {
		t.purged[session] = max(t.purged[session], at)
	}
	if e := t.sessions[session]; e != nil {
		t.forget(e)
	}
}

// begin and finish set what is known of a span. A repeat of a record changes nothing: the first beginning and the first end count.
func (s *span) started(at int64, name string) {
	if s.begin == 0 || at < s.begin {
		s.begin = at
	}
	if name != "" {
		s.name = name
	}
}

func (s *span) ended(at int64, status string) {
	if s.end == 0 {
		s.end, s.status = at, status
	}
}

// recordID is what the turntable.id of a record of a turn says: {turn}/{step}/{what}/{number}...
type recordID struct{ turn, step, what, number string }

func idOf(r processors.Inbound) (id recordID, ok bool) {
	return idOfText(string(r.Header(topics.HeaderID)))
}

func idOfText(text string) (id recordID, ok bool) {
	parts := strings.SplitN(text, "/", 5)
	if len(parts) < 4 {
		return id, false
	}
	return recordID{parts[0], parts[1], parts[2], parts[3]}, true
}

// step is the ID of the span of a think step, and call that of a tool call: the ID of the record that asks for it.
func (id recordID) stepID() string { return id.turn + "/" + id.step }

func (id recordID) callID() string { return id.turn + "/" + id.step + "/tool-use/" + id.number }

// flow reads records of the pipeline into spans.
type flow struct {
	catalog topics.Catalog
	handle  map[string]func(t *timelines, r processors.Inbound, session string, at int64)
}

// newFlow returns the flow of the topics that the agent has.
func newFlow(c topics.Catalog) *flow {
	f := &flow{catalog: c, handle: map[string]func(*timelines, processors.Inbound, string, int64){}}
	f.handle[c.EnrichedMessageInput.Name()] = f.stepBegins
	f.handle[c.ThinkRequestResponse.Name()] = f.stepEnds
	f.handle[c.ToolUse.Name()] = f.callBegins
	f.handle[c.ToolUseResult.Name()] = f.callEnds
	f.handle[c.MessageOutput.Name()] = f.turnEnds
	f.handle[c.GateRequests.Name()] = f.gateBegins
	f.handle[c.GateOutcomes.Name()] = f.gateEnds
	f.handle[c.Deliveries.Name()] = f.deliveryBegins
	f.handle[c.DeliveryReceipts.Name()] = f.deliveryEnds
	f.handle[c.DelegationStatus.Name()] = f.delegation
	f.handle[c.SessionControl.Name()] = f.control
	for _, s := range c.Specs() {
		if !s.Created {
			delete(f.handle, s.Name)
		}
	}
	return f
}

// apply applies a record.
func (f *flow) apply(t *timelines, r processors.Inbound) {
	handle, session, at := f.handle[r.Topic], string(r.Key), r.Timestamp.UnixMilli()
	if handle != nil && !t.lost(session, at) {
		handle(t, r, session, at)
	}
}

func (f *flow) stepBegins(t *timelines, r processors.Inbound, session string, at int64) {
	if id, ok := idOf(r); ok {
		s := t.at(session, spanStep, id.stepID())
		s.turn, s.step = id.turn, id.step
		s.started(at, "model")
		turn := t.at(session, spanTurn, id.turn)
		turn.turn = id.turn
		turn.started(at, "turn")
	}
}

func (f *flow) stepEnds(t *timelines, r processors.Inbound, session string, at int64) {
	if id, ok := idOf(r); ok {
		s := t.at(session, spanStep, id.stepID())
		s.turn, s.step = id.turn, id.step
		s.ended(at, "answered")
	}
}

func (f *flow) callBegins(t *timelines, r processors.Inbound, session string, at int64) {
	id, ok := idOf(r)
	if !ok {
		return
	}
	v := f.catalog.ToolUse.Codec().Unmarshal(r.Value)
	s := t.at(session, spanCall, id.callID())
	s.turn, s.step = id.turn, id.step
	s.started(at, text(v.Value.Name))
}

func (f *flow) callEnds(t *timelines, r processors.Inbound, session string, at int64) {
	id, ok := idOf(r)
	if !ok {
		return
	}
	v := f.catalog.ToolUseResult.Codec().Unmarshal(r.Value)
	s := t.at(session, spanCall, id.callID())
	s.turn, s.step = id.turn, id.step
	if s.name == "" {
		s.name = text(v.Value.Name)
	}
	s.ended(at, text(v.Value.Status))
}

func (f *flow) turnEnds(t *timelines, r processors.Inbound, session string, at int64) {
	id, ok := idOf(r)
	if !ok {
		return
	}
	status := "answered"
	if v := f.catalog.MessageOutput.Codec().Unmarshal(r.Value); v.Value.Error != nil {
		status = "error " + string(v.Value.Error.Code)
	}
	s := t.at(session, spanTurn, id.turn)
	s.turn, s.name = id.turn, "turn"
	s.ended(at, status)
}

func (f *flow) gateBegins(t *timelines, r processors.Inbound, session string, at int64) {
	v := f.catalog.GateRequests.Codec().Unmarshal(r.Value).Value
	if v.GateID == "" || v.Withdrawn != "" || v.Shadow {
		return
	}
	s := t.at(session, spanGate, v.GateID)
	s.turn, s.parent = v.TurnID, v.CallID
	s.started(at, v.Tool)
}

func (f *flow) gateEnds(t *timelines, r processors.Inbound, session string, at int64) {
	v := f.catalog.GateOutcomes.Codec().Unmarshal(r.Value).Value
	if v.GateID == "" || v.Shadow {
		return
	}
	s := t.at(session, spanGate, v.GateID)
	s.turn, s.parent, s.name = v.TurnID, v.CallID, v.Tool
	s.started(at-v.WaitedMS, "")
	s.ended(at, string(v.Status))
}

func (f *flow) deliveryBegins(t *timelines, r processors.Inbound, session string, at int64) {
	v := f.catalog.Deliveries.Codec().Unmarshal(r.Value).Value
	if v.DeliveryID == "" {
		return
	}
	s := t.at(session, spanDelivery, v.DeliveryID)
	s.turn = v.TurnID
	s.started(at, v.Route.Key())
}

func (f *flow) deliveryEnds(t *timelines, r processors.Inbound, session string, at int64) {
	if v := f.catalog.DeliveryReceipts.Codec().Unmarshal(r.Value).Value; v.Final {
		t.at(session, spanDelivery, v.DeliveryID).ended(at, string(v.Outcome))
	}
}

func (f *flow) delegation(t *timelines, r processors.Inbound, _ string, _ int64) {
	v := f.catalog.DelegationStatus.Codec().Unmarshal(r.Value).Value
	if v.CallbackID == "" || t.lost(v.SessionID, v.StartedMS) {
		return
	}
	s := t.at(v.SessionID, spanDelegation, v.CallbackID)
	s.started(v.StartedMS, v.Target)
	if v.EndedMS > 0 {
		s.ended(v.EndedMS, string(v.Status))
	}
}

// control forgets what a purged session did.
func (f *flow) control(t *timelines, r processors.Inbound, session string, at int64) {
	if v := f.catalog.SessionControl.Codec().Unmarshal(r.Value); v.Err == nil && v.Value.Action == topics.ActionPurge {
		t.purge(session, at)
	}
}

// text returns "" for nil.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
