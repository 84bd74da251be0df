package delivery

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/topics"
)

// Outcome is what an event brought about.
type Outcome struct {
	// Changed says that the row must be written, or deleted where State is nil. Where it is false the row stays as it
	// was found.
	Changed bool
	// State is the row from now on, where Changed is true.
	State *State
	// Effects happen in this order, before the row is written.
	Effects []Effect
}

// Gate is what is known of a route: its circuit and what is on its way. It may be late.
type Gate struct {
	// OpenUntilMS is until when no attempt is made, 0 where the circuit is closed.
	OpenUntilMS int64
	// InFlight is how many attempts are on their way.
	InFlight int64
}

// Routes looks a route up by its key (topics.Destination.Key).
type Routes func(key string) Gate

// Apply is the whole state machine: what an event does to the row of its session. A nil state is a session without a
// row. Apply owns the state it is given, which is of no use afterwards; the event is only read. It depends on nothing
// but its arguments, what routes says included: equal ones give equal outcomes.
//
// An event that was applied before changes nothing and has no effects.
func Apply(state *State, event Event, routes Routes, now time.Time, rules Rules) Outcome {
	s := &session{row: state, key: event.session(), routes: routes, now: now, rules: rules}
	if s.row == nil {
		s.row = &State{Version: rowVersion}
	}
	event.apply(s)
	s.advance()
	switch {
	case !s.changed:
		return Outcome{Effects: s.effects}
	case s.erased:
		return Outcome{Changed: state != nil, Effects: s.effects}
	}
	if _, timer := event.(DeadlineCame); !timer {
		s.row.TouchedMs = s.nowMS()
	}
	s.trim()
	s.row.DeadlineMs = s.deadline()
	return Outcome{State: s.row, Changed: true, Effects: s.effects}
}

// session is a row while an event is applied to it.
type session struct {
	row     *State
	key     string
	routes  Routes
	now     time.Time
	rules   Rules
	effects []Effect
	changed bool // the row must be written
	erased  bool // the row must go
}

func (s *session) nowMS() int64 { return s.now.UnixMilli() }

// after is the time a duration from now, in milliseconds.
func (s *session) after(d time.Duration) int64 { return s.now.Add(d).UnixMilli() }

// route is the key of a delivery's route.
func (d *Delivery) route() topics.Destination {
	return topics.Destination{Kind: d.Kind, Service: d.Service}
}

// find is the open delivery of that id, nil where there is none.
func (s *session) find(id string) *Delivery {
	for _, d := range s.row.Open {
		if d.Id == id {
			return d
		}
	}
	return nil
}

// fits reports whether the row is within its budget.
func (s *session) fits() bool { return proto.Size(s.row) <= s.rules.RowLimit-rowReserve }

// rowReserve is kept for what every event adds to the row: memories, failures, deadlines.
const rowReserve = 16 << 10

// makeRoom gives up the dead, the oldest first, until the row fits (R11).
func (s *session) makeRoom() bool {
	for !s.fits() {
		if len(s.row.Dead) == 0 {
			return false
		}
		s.row.Dead = s.row.Dead[1:]
		s.changed = true
	}
	return true
}

// trim is the last resort for a row over its budget: it forgets the dead, then the older half of what it remembers, and
// gives up the newest deliveries. A larger record would be refused, at every restart again.
func (s *session) trim() {
	for proto.Size(s.row) > s.rules.RowLimit {
		switch {
		case len(s.row.Dead) > 0:
			s.row.Dead = s.row.Dead[1:]
		case len(s.row.Remembered) >= 2*memorySize:
			s.forgetHalf()
		case len(s.row.Open) > 0:
			s.bury(s.row.Open[len(s.row.Open)-1], reasonNoRoom)
		case len(s.row.Routes) > 0:
			s.row.Routes = s.row.Routes[1:]
		default:
			return
		}
	}
}
