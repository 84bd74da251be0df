package turn

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/topics"
)

// Outcome is what an event brought about.
type Outcome struct {
	// Starved says that the event needs the history, or what else of the row stands apart and was not loaded: nothing
	// else is set.
	Starved bool
	// Changed says that the row must be written, or deleted where State is nil. Where it is false the row stays as it
	// was found.
	Changed bool
	// State is the row from now on, where Changed is true.
	State *State
	// Effects happen in this order, before the row is written.
	Effects []Effect

	asked asked // for the next event, where State is written
}

// Apply is the whole processor: what an event does to the row of its session. A nil state is a session without a row.
// Apply owns the state it is given, which is of no use afterwards; the event is only read. It depends on nothing but
// its arguments: equal ones give equal outcomes.
//
// An event that was applied before changes nothing and has no effects. That is enough after a crash too: the runtime
// writes a row only after the outputs of its event are acknowledged, so a row that knows an event proves its outputs.
func Apply(state *State, event Event, now time.Time, rules Rules) Outcome {
	return apply(state, asked{}, event, now, rules)
}

// apply is Apply with what was kept beside the state.
func apply(state *State, kept asked, event Event, now time.Time, rules Rules) Outcome {
	s := &session{row: state, asked: kept, key: event.session(), now: now, rules: rules}
	if s.row == nil {
		s.row = &State{Version: rowVersion}
	}
	record := event.record()
	var cause digest
	if record != nil {
		cause = digests.Of(ofCause, record.Topic, record.Cause)
		if s.knowsCause(cause) {
			return Outcome{}
		}
	}
	event.apply(s)
	if s.changed && len(s.row.Early) > 0 {
		s.applyEarly()
	}
	switch {
	case s.starved:
		return Outcome{Starved: true}
	case !s.changed:
		return Outcome{Effects: s.effects}
	case s.erased:
		return Outcome{Changed: state != nil, Effects: s.effects}
	}
	if record != nil {
		s.rememberCause(cause)
		s.row.TouchedMs = s.nowMS()
	}
	if trimmed := s.trim(); s.starved {
		return Outcome{Starved: true}
	} else if !trimmed {
		// The row was over its budget as it was found (the limit was lowered). A record of it would be refused, at
		// every restart again: it stays as it is, and nothing is done that needs it.
		if record != nil {
			s.effects = refuseUnapplied(event, reasonRowSize, tooLarge("the session's row is over its limit"), now)
		}
		return Outcome{Effects: s.effects}
	}
	s.row.DeadlineMs, s.row.Version = s.deadline(), s.row.format()
	return Outcome{State: s.row, Changed: true, Effects: s.effects, asked: s.asked}
}

// session is a row while an event is applied to it.
type session struct {
	row     *State
	asked   asked
	key     string
	now     time.Time
	rules   Rules
	effects []Effect
	changed bool    // the row must be written
	erased  bool    // the row must go
	purging bool    // the session ends: no turn begins
	starved bool    // what stands apart was asked for and is not loaded
	instant *string // now in text, once it was needed

	replaying *Held // the held record that is being applied, nil for the event itself
}

func (s *session) nowMS() int64 { return s.now.UnixMilli() }

// after is the time a duration from now, in milliseconds.
func (s *session) after(d time.Duration) int64 { return s.now.Add(d).UnixMilli() }

// thinking reports whether a think step is open.
func (s *session) thinking() bool { return s.row.Turn != nil && len(s.row.Turn.Calls) == 0 }

// stored is the conversation that the last answered turn left.
func (s *session) stored() topics.Raw {
	s.starved = s.starved || len(s.row.HistoryParts) > 0
	return s.row.History
}

// tail is the conversation of the open turn behind what it shares with the stored one.
func (s *session) tail() topics.Raw {
	s.starved = s.starved || len(s.row.Turn.TailParts) > 0
	return s.row.Turn.Tail
}

// within reports whether the row, with what of it stands apart, has no more than so many bytes.
func (s *session) within(limit int) bool {
	apart := s.row.partsSize()
	// Nearly all rows are far below any limit: these need not be measured exactly.
	return s.row.bound()+apart <= limit || proto.Size(s.row)+apart <= limit
}

// fits reports whether the row is within its budget.
func (s *session) fits() bool { return s.within(s.rules.RowLimit - rowReserve) }

// rowReserve is kept for what every event adds to the row: memories, a deadline.
const rowReserve = 256

// makeRoom gives up what can be given up without ending the open turn, the least loss first, until the row fits (R11).
func (s *session) makeRoom() bool {
	for !s.fits() {
		switch {
		case s.dropHeld():
		case len(s.row.Waiting) > 0:
			waiting := s.row.Waiting
			last := waiting[len(waiting)-1]
			s.row.Waiting = slices.Delete(waiting, len(waiting)-1, len(waiting))
			s.reject(last, queueFull("no room for a waiting message"))
		default:
			return false
		}
	}
	return true
}

// trim is the last resort for a row over its budget: it gives up what is held, then it forgets the older half of what it
// remembers.
func (s *session) trim() bool {
	for !s.within(s.rules.RowLimit) && s.dropHeld() {
	}
	for !s.within(s.rules.RowLimit) && len(s.row.Causes)+len(s.row.Requests)+len(s.row.Calls) > 0 {
		s.row.Causes = forgetHalf(s.row.Causes)
		s.row.Requests = forgetHalf(s.row.Requests)
		s.row.Calls = forgetHalf(s.row.Calls)
	}
	return s.within(s.rules.RowLimit)
}
