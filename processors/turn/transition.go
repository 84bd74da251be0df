package turn

import (
	"time"

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
	if !s.row.within(rules.RowLimit) {
		s.found = s.row.size()
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
	s.applyEarly()
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
	fits := s.trim()
	for !s.starved && s.applyEarly() { // trim may have given the next message its turn
		fits = s.trim()
	}
	if s.starved {
		return Outcome{Starved: true}
	} else if !fits && record != nil {
		return Outcome{Effects: s.refuseForSize(event)}
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
	found   int     // the size of a row that was over its limit as it was found, else 0
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
