package turn

import (
	"slices"
	"time"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
)

// apply is the transition of the turn: it applies an event to the row of its session. A nil state is a session without a
// row. apply takes ownership of the state, which the caller must not use afterwards, and does not change event. It is a pure
// function: equal arguments give equal outcomes.
//
// It reads from parts only the parts of the row that the event needs; nil means that the table has no parts: the row is
// then written as a whole. If a part that is needed cannot be read, apply returns an error and no outcome.
//
// An event that was applied before changes nothing and has no effects. This holds after a crash too: the runtime writes a
// row only after the outputs of its event are acknowledged, so a row that remembers an event proves its outputs.
func apply(from snapshot, event event, now time.Time, rules rules) (outcome, error) {
	if event.writtenByTurn() {
		return outcome{}, nil
	}
	s := &transition{session: session{row: from.state, key: event.session(), now: now, rules: rules, spendings: from.spendings}}
	if s.row == nil {
		s.row, s.isNew = &turnrow.State{Version: rowVersion}, true
	}
	if err := s.layout.open(s.row, from.parts, &from.full, rules.RowLimit); err != nil {
		return outcome{}, err
	}
	s.rowLimit = rules.RowLimit - s.layout.reserve()
	if !within(s.row, s.rowLimit) {
		s.oversize = stateSize(s.row)
	}
	record := event.source()
	var cause digest
	if record != nil {
		cause = digests.Of(ofCause, record.Topic, record.Cause)
		if s.knowsCause(cause) {
			return outcome{}, nil
		}
	}
	s.handle(event)
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
		return outcome{}, s.err
	case !s.changed && record != nil && s.postponeEnd():
	case !s.changed:
		return outcome{Effects: s.effects}, nil
	case s.erased && from.state == nil:
		return outcome{Effects: s.effects}, nil
	case s.erased:
		return s.outcome(nil), nil
	case !fits && record != nil:
		return outcome{Effects: s.deadLetterForSize(event)}, nil
	}
	s.row.DeadlineMs, s.row.Version = s.deadline(), formatOf(s.row)
	return s.outcome(s.row), nil
}

// handle is what happens to an event.
func (s *transition) handle(event event) {
	switch e := event.(type) {
	case messageArrived: // it gets its turn, or waits for it
		s.receiveMessage(e)
	case compacted: // the turn's first step begins
		s.receiveSummary(e)
	case thinkResponded: // the step's calls are handed out, or the turn is answered
		s.receiveResponse(e)
	case thinkFailed: // the turn ends in an error
		s.receiveFailure(e)
	case gateEnded: // a call is handed out or refused
		s.receiveOutcome(e)
	case toolAnswered: // a call ends; with the last one the next step begins
		s.receiveResult(e)
	case toolFailed:
		s.receiveToolFailure(e)
	case gateOpened: // the clock of the step stops
		s.receiveGate(e)
	case routeGiven: // the output of a message has a way to its caller
		s.receiveRoute(e)
	case controlled: // turns end, or the session
		s.receiveControl(e)
	case deadlineCame:
		s.due = machine.Through(e.Read, s.now)
		s.timeOut()
		s.applyEarly() // before expiry: a record whose step opens now is not too late
		e.expire(s)
		// A deadline can fire too early if rules were changed or the clock was set back. It fires again only if the row is
		// written.
		s.changed = s.changed || s.row.DeadlineMs != 0
	}
}

// outcome returns the outcome of a changed session; a nil row is deleted.
func (s *transition) outcome(row *turnrow.State) outcome {
	out := outcome{Changed: true, State: row, Effects: s.effects}
	out.NewParts, out.UnusedParts, out.full = s.layout.divide(row, s.nowMS())
	return out
}

// trim makes the row fit after an event was applied. It reports false if the row must not be written.
func (s *transition) trim() bool {
	s.row.DeadlineMs, s.row.Version = s.deadline(), formatOf(s.row) // they count towards the row's size
	for !s.shrink(s.rowLimit, waitingMessages) && s.row.Turn != nil {
		if !s.giveUpGate() {
			s.fail(tooLarge("no room in the session's row"))
		}
	}
	limit := max(s.rowLimit, s.oversize)
	if s.shrink(limit, waitingMessages) {
		return true
	}
	s.row.Calls = nil
	return within(s.row, limit)
}

// applyEarly applies the held records whose steps have opened. This may open further steps. It reports whether it
// applied any.
func (s *transition) applyEarly() (any bool) {
	for s.changed && s.err == nil && !s.purging {
		i := slices.IndexFunc(s.row.Early, s.isDue)
		if i < 0 {
			break
		}
		any = true
		h := s.row.Early[i]
		s.row.Early, s.changed = slices.Delete(s.row.Early, i, i+1), true
		e, err := heldEvent(h, s.key)
		if err != nil { // the row is damaged: the record was readable when it was held
			s.giveUp(h, reasonUnreadable)
			continue
		}
		s.replaying = h
		s.handle(e)
		s.replaying = nil
	}
	return any
}
