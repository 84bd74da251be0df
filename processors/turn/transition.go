package turn

import (
	"time"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// Outcome is the result of applying an event.
type Outcome struct {
	// Changed reports that the row must be written, or deleted if State is nil. If it is false the row stays unchanged.
	Changed bool
	// State is the new row if Changed is true.
	State *turnrow.State
	// Effects are the outputs and dead letters, to be sent in this order before the row is written.
	Effects []Effect
	// NewParts are the parts of the row to write before the row.
	NewParts []NewPart
	// UnusedParts are the numbers of the parts that the row no longer names, to delete after the row is written.
	UnusedParts []uint32

	row  []byte     // State as it is written; nil until it is encoded
	full fullValues // to be cached with State for the next event
}

// Apply is the transition of the turn: it applies an event to the row of its session. A nil state is a session without a
// row. Apply takes ownership of state, which the caller must not use afterwards, and does not change event. It is a pure
// function: equal arguments give equal outcomes.
//
// Apply reads from parts only the parts of the row that the event needs; nil means that the table has no parts: the row is
// then written as a whole. If a part that is needed cannot be read, Apply returns an error and no outcome.
//
// An event that was applied before changes nothing and has no effects. This holds after a crash too: the runtime writes a
// row only after the outputs of its event are acknowledged, so a row that remembers an event proves its outputs.
func Apply(state *turnrow.State, event Event, parts Parts, agent string, now time.Time, c Config) (Outcome, error) {
	return apply(snapshot{state: state, parts: parts}, event, now, rules{Config: c, Agent: agent})
}

// apply is Apply with the cached values of a snapshot.
func apply(from snapshot, event Event, now time.Time, rules rules) (Outcome, error) {
	if event.writtenByTurn() {
		return Outcome{}, nil
	}
	s := &transition{row: from.state, key: event.session(), now: now, rules: rules, spendings: from.spendings}
	if s.row == nil {
		s.row, s.isNew = &turnrow.State{Version: rowVersion}, true
	}
	if err := s.layout.open(s.row, from.parts, &from.full, rules.RowLimit); err != nil {
		return Outcome{}, err
	}
	s.rowLimit = rules.RowLimit - s.layout.reserve()
	if !within(s.row, s.rowLimit) {
		s.oversize = stateSize(s.row)
	}
	record := event.record()
	var cause digest
	if record != nil {
		cause = digests.Of(ofCause, record.Topic, record.Cause)
		if s.knowsCause(cause) {
			return Outcome{}, nil
		}
	}
	event.apply(s)
	s.applyEarly()
	fits := true
	if s.changed && !s.erased {
		if record != nil {
			s.rememberCause(cause)
			s.row.TouchedMs = s.nowMS()
		}
		fits = s.trim()
		for s.applyEarly() { // trim may have given the next message its turn
			fits = s.trim()
		}
	}
	switch {
	case s.err != nil:
		return Outcome{}, s.err
	case !s.changed && record != nil && s.postponeEnd():
	case !s.changed:
		return Outcome{Effects: s.effects}, nil
	case s.erased && from.state == nil:
		return Outcome{Effects: s.effects}, nil
	case s.erased:
		return s.outcome(nil), nil
	case !fits && record != nil:
		return Outcome{Effects: s.deadLetterForSize(event)}, nil
	}
	s.row.DeadlineMs, s.row.Version = s.deadline(), formatOf(s.row)
	return s.outcome(s.row), nil
}

// outcome returns the outcome of a changed session; a nil row is deleted.
func (s *transition) outcome(row *turnrow.State) Outcome {
	out := Outcome{Changed: true, State: row, Effects: s.effects}
	out.NewParts, out.UnusedParts, out.full = s.layout.divide(row, s.nowMS())
	return out
}

// transition is a row while an event is applied to it.
type transition struct {
	row       *turnrow.State
	layout    rowLayout
	rowLimit  int   // maximum size of the row before divide, in bytes
	oversize  int   // the size of the stored row if it exceeded its limit, else 0
	delayed   int64 // when the deadlines that are postponed are due again, in milliseconds since the epoch; 0 for none
	key       string
	isNew     bool // the session had no row
	now       time.Time
	rules     rules
	effects   []Effect
	changed   bool    // the row must be written
	erased    bool    // the row must be deleted
	purging   bool    // the session ends: no turn begins
	cannotAsk bool    // the turn ends because its caller cannot ask a person
	err       error   // a part could not be read: the outcome is discarded
	instant   *string // now as text; nil until it is needed

	spendings spendings // of users and tenants, nil if their budgets are not checked

	settled *settlement // of the open step, between its response and its end in the event stream

	replaying *turnrow.Held // the held record that is being applied, nil for the event itself
}

func (s *transition) nowMS() int64 { return s.now.UnixMilli() }

// after returns now plus d, in milliseconds since the epoch.
func (s *transition) after(d time.Duration) int64 { return s.now.Add(d).UnixMilli() }

// thinking reports whether a think step is open.
func (s *transition) thinking() bool {
	return s.row.Turn != nil && len(s.row.Turn.Calls) == 0 && s.row.Turn.Compaction == nil
}

// storedHistory returns the session's history.
func (s *transition) storedHistory() topics.Raw {
	s.load(history)
	return s.row.History
}

// turnTail returns the open turn's conversation after the prefix that it shares with the history.
func (s *transition) turnTail() topics.Raw {
	s.load(tail)
	return s.row.Turn.Tail
}

// turnPrompt returns the message that the open step sent to the model, nil if the row had no room for it.
func (s *transition) turnPrompt() topics.Raw {
	s.load(prompt)
	return s.row.Turn.Prompt
}
