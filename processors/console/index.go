package console

import (
	"cmp"
	"strings"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/turn"
)

// index is what the console keeps of the tables: where the rows of each session are, and small entries for what waits or failed. Rows
// are read from the brokers when a page shows them. It does no I/O. The caller holds the lock, unless a method says otherwise.
type index struct {
	mu     sync.Mutex
	config *Config

	sessions  map[string]*session
	byID      ordered[*session]
	byChange  ordered[*session] // those of which more is left than what they remember, newest first
	waiting   ordered[*session] // those with an open turn or waiting messages: that changed first, first
	byDue     ordered[*session] // those whose turn has a deadline, the earliest first
	gates     ordered[*openGate]
	open      ordered[*openDelivery] // deliveries that wait, the earliest due first
	dead      ordered[*openDelivery] // deliveries that an operator may requeue, oldest first
	circuits  map[string]any         // the rows of routes whose breaker is not closed and quiet
	broken    map[string]struct{}    // tables and keys of rows that cannot be decoded
	forgotten bool                   // sessions were left out
	full      map[string]time.Time   // what was left out first when, by the kind of item
	letters   letters
	spending  spending
}

// rowKind is a table of sessions.
type rowKind int

const (
	turnRow rowKind = iota
	gateRow
	deliveryRow
	rowKinds
)

// session is what the index has of a session. Its rows are in the same partition of each table.
type session struct {
	id         string
	changed    int64 // Unix ms
	rows       [rowKinds]int64
	partition  int32
	listed     bool
	waits      *waits // nil for an idle session
	gates      []*openGate
	deliveries []*openDelivery
	parts      map[uint32]int64 // where the parts of its turn row are, nil for none
}

// waits is what an open session waits for.
type waits struct {
	turn.TurnView
	queue    int
	deadline int64 // Unix ms, 0 for none
	user     string
}

// openGate is a gate without an outcome. Its fields are constant.
type openGate struct {
	ID, Tool, Kind, Session, Agent string
	Opened, Expires                int64
	Dangerous                      bool
}

// openDelivery is a delivery without a final receipt, or a dead one. Its fields are constant.
type openDelivery struct {
	session, last string
	due, created  int64
	view          delivery.View // without body and failures
	failures      int
}

func newIndex(c *Config) *index {
	x := &index{
		config: c, sessions: map[string]*session{}, circuits: map[string]any{}, broken: map[string]struct{}{}, full: map[string]time.Time{},
	}
	x.byID.compare = func(a, b *session) int { return strings.Compare(a.id, b.id) }
	x.byChange.compare = func(a, b *session) int { return cmp.Or(cmp.Compare(b.changed, a.changed), strings.Compare(a.id, b.id)) }
	x.waiting.compare = func(a, b *session) int { return cmp.Or(cmp.Compare(a.changed, b.changed), strings.Compare(a.id, b.id)) }
	x.byDue.compare = func(a, b *session) int {
		return cmp.Or(cmp.Compare(a.waits.deadline, b.waits.deadline), strings.Compare(a.id, b.id))
	}
	x.gates.compare = func(a, b *openGate) int { return cmp.Or(cmp.Compare(a.Opened, b.Opened), strings.Compare(a.ID, b.ID)) }
	x.open.compare = func(a, b *openDelivery) int {
		return cmp.Or(cmp.Compare(a.due, b.due), strings.Compare(a.view.DeliveryID, b.view.DeliveryID))
	}
	x.dead.compare = func(a, b *openDelivery) int {
		return cmp.Or(cmp.Compare(a.created, b.created), strings.Compare(a.view.DeliveryID, b.view.DeliveryID))
	}
	x.letters.init()
	x.spending.init()
	return x
}

// at returns the session of a row, which it adds.
func (x *index) at(id string, kind rowKind, partition int32, offset int64) *session {
	s := x.sessions[id]
	if s == nil {
		s = &session{id: id, rows: [rowKinds]int64{-1, -1, -1}}
		x.sessions[id] = s
		x.byID.add(s)
	}
	s.partition, s.rows[kind] = partition, offset
	return s
}

// drop forgets a session that has no rows.
func (x *index) drop(s *session) {
	if s.rows == [rowKinds]int64{-1, -1, -1} {
		x.byID.remove(s)
		delete(x.sessions, s.id)
	}
}

// unlist takes a session out of the lists of turns, before it changes.
func (x *index) unlist(s *session) {
	if s.listed {
		x.byChange.remove(s)
	}
	if s.waits != nil {
		x.waiting.remove(s)
		if s.waits.deadline > 0 {
			x.byDue.remove(s)
		}
	}
	s.waits, s.listed = nil, false
}

// putTurn puts the row of a turn into the index. A nil view is a row that was deleted or cannot be decoded.
func (x *index) putTurn(s *session, v *turn.View) {
	x.unlist(s)
	if v == nil {
		s.changed = 0
		x.drop(s)
		return
	}
	s.changed = millis(v.ChangedAt)
	s.listed = v.Turn != nil || len(v.Waiting) > 0 || v.Messages > 0 || v.HiddenBytes > 0
	if v.Turn != nil || len(v.Waiting) > 0 {
		s.waits = &waits{queue: len(v.Waiting), user: v.UserID}
		if v.Turn != nil {
			s.waits.TurnView, s.waits.deadline = *v.Turn, millis(v.Turn.DeadlineAt)
			s.waits.Calls = nil
		}
		x.waiting.add(s)
		if s.waits.deadline > 0 {
			x.byDue.add(s)
		}
	}
	if s.listed {
		x.byChange.add(s)
	}
	if len(x.sessions) > x.config.SessionLimit {
		x.forget(s)
	}
}

// forgetLooks is at how many sessions forget looks: those with an open turn are kept.
const forgetLooks = 1000

// forget leaves out the idle session that changed the longest time ago, but not one.
func (x *index) forget(but *session) {
	var oldest *session
	looked := 0
	x.byChange.back(func(s *session) bool {
		if looked++; s != but && s.waits == nil && len(s.gates)+len(s.deliveries) == 0 {
			oldest = s
		}
		return oldest == nil && looked < forgetLooks
	})
	if oldest != nil {
		x.unlist(oldest)
		oldest.rows = [rowKinds]int64{-1, -1, -1}
		x.drop(oldest)
		x.forgotten = true
	}
}

// room reports whether there is room for another item of a kind.
func (x *index) room(kind string, n int) bool {
	if n < x.config.ItemLimit {
		return true
	}
	if _, known := x.full[kind]; !known {
		x.full[kind] = x.config.Clock.Now()
	}
	return false
}

// putGates replaces the open gates of a session.
func (x *index) putGates(s *session, views []gate.View) {
	for _, g := range s.gates {
		x.gates.remove(g)
	}
	s.gates = nil
	for _, v := range views {
		if v.Outcome != nil || !x.room("gates", x.gates.n) {
			continue
		}
		g := &openGate{
			ID: v.GateID, Tool: v.Tool, Kind: string(v.Kind), Session: s.id, Opened: millis(v.RequestedAt), Expires: millis(v.ExpiresAt),
			Dangerous: v.Dangerous, Agent: v.Origin.Agent,
		}
		s.gates = append(s.gates, g)
		x.gates.add(g)
	}
	if views == nil {
		x.drop(s)
	}
}

// putDeliveries replaces the deliveries of a session.
func (x *index) putDeliveries(s *session, views []delivery.View) {
	for _, d := range s.deliveries {
		x.deliveriesOf(d).remove(d)
	}
	s.deliveries = nil
	for _, v := range views {
		if !x.room("deliveries", x.open.n+x.dead.n) {
			break
		}
		d := &openDelivery{session: s.id, due: millis(v.DueAt), created: millis(v.CreatedAt), failures: len(v.Failures), view: v}
		if n := len(v.Failures); n > 0 {
			d.last = v.Failures[n-1].Reason
		}
		d.view.Body, d.view.Failures = nil, nil
		s.deliveries = append(s.deliveries, d)
		x.deliveriesOf(d).add(d)
	}
	if views == nil {
		x.drop(s)
	}
}

func (x *index) deliveriesOf(d *openDelivery) *ordered[*openDelivery] {
	if d.view.Status == delivery.StatusDead {
		return &x.dead
	}
	return &x.open
}

// millis returns an ISO 8601 time as Unix milliseconds, 0 for none.
func millis(iso string) int64 {
	if iso == "" {
		return 0
	}
	t, err := time.Parse(time.RFC3339Nano, iso)
	if err != nil {
		return 0
	}
	return t.UnixMilli()
}
