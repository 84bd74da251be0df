package turn

import (
	"time"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/topics"
)

// Outcome is the result of applying an event.
type Outcome struct {
	// Starved reports that the event needs a field of the row whose parts are not loaded. No other field is set: load all
	// parts and apply the event again.
	Starved bool
	// Changed reports that the row must be written, or deleted if State is nil. If it is false the row stays unchanged.
	Changed bool
	// State is the new row if Changed is true.
	State *State
	// Effects are the outputs and dead letters, to be sent in this order before the row is written.
	Effects []Effect

	asked asked // to be cached with State for the next event
}

// Apply is the transition of the turn: it applies an event to the row of its session. A nil state is a session without a
// row. Apply takes ownership of state, which the caller must not use afterwards, and does not change event. It is a pure
// function: equal arguments give equal outcomes.
//
// An event that was applied before changes nothing and has no effects. This holds after a crash too: the runtime writes a
// row only after the outputs of its event are acknowledged, so a row that remembers an event proves its outputs.
func Apply(state *State, event Event, now time.Time, rules Rules) Outcome {
	return apply(state, asked{}, event, now, rules)
}

// apply is Apply with the cached input of the open step.
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
	erased  bool    // the row must be deleted
	purging bool    // the session ends: no turn begins
	starved bool    // a field was needed whose parts are not loaded
	found   int     // the size of the stored row if it exceeded its limit, else 0
	instant *string // now as text; nil until it is needed

	replaying *Held // the held record that is being applied, nil for the event itself
}

func (s *session) nowMS() int64 { return s.now.UnixMilli() }

// after returns now plus d, in milliseconds since the epoch.
func (s *session) after(d time.Duration) int64 { return s.now.Add(d).UnixMilli() }

// thinking reports whether a think step is open.
func (s *session) thinking() bool { return s.row.Turn != nil && len(s.row.Turn.Calls) == 0 }

// stored returns the session's history. It sets starved if the history is not loaded.
func (s *session) stored() topics.Raw {
	s.starved = s.starved || len(s.row.HistoryParts) > 0
	return s.row.History
}

// tail returns the open turn's conversation after the prefix that it shares with the history. It sets starved if the tail
// is not loaded.
func (s *session) tail() topics.Raw {
	s.starved = s.starved || len(s.row.Turn.TailParts) > 0
	return s.row.Turn.Tail
}
