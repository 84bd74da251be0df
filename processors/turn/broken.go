package turn

import (
	"slices"
	"time"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

var internal = failure{topics.CodeInternal, "internal error"}

// defect returns the outcome of an event that cannot be applied to a row, because of a bug or a damaged row. The record is
// dead-lettered, its message is answered with an error, and the row stays unchanged. A deadline ends the turn, because no
// other event is certain to end it.
func defect(row any, e event, cause error, now time.Time, rules rules) outcome {
	if e.source() != nil {
		return outcome{Effects: deadLetterUnapplied(e, cause.Error(), internal, now, rules)}
	}
	state, err := stateOf(row)
	if err != nil {
		return outcome{}
	}
	return abandon(state, e.session(), internal, now, rules)
}

// abandon ends everything that is open in a session without running the transition. Accepted messages get error outputs without
// routes, except to their origins; held records are dead-lettered. The conversation, the cost and the memories stay.
func abandon(state *turnrow.State, key string, f failure, now time.Time, rules rules) outcome {
	if state == nil {
		return outcome{}
	}
	s := &transition{session: session{row: state, key: key, now: now, rules: rules}}
	s.abandonGates()
	s.abandonStream(f)
	for a := range s.unfinished() {
		if a == nil || len(a.TurnId) > maxID { // no record may be too large
			continue
		}
		o := rules.errorOutput(f)
		boundIDs(a)
		address(&o, s.key, a)
		o.UserID, o.Cost, o.Timestamp = a.UserId, state.Cost, topics.Timestamp(now)
		if len(a.Origin) <= topics.MaxOrigin && len(a.Task) <= maxTask {
			o.ReplyTo = ownRoute(a)
		}
		s.emit(a.TurnId, 0, answered(o), 0)
	}
	for _, h := range slices.Concat(state.Early, state.Turn.GetHeld()) {
		s.giveUp(h, reasonTurnEnded)
	}
	unused := slices.Concat(numbersOf(state.Turn.GetTailParts()), numbersOf(state.Turn.GetResultsParts()),
		numbersOf(state.Turn.GetPromptParts()))
	state.Turn, state.Waiting, state.Routes, state.Early, state.OtherGates, state.DeadlineMs = nil, nil, nil, nil, nil, 0
	dropMemoryKey(state)
	state.Version = formatOf(state)
	return outcome{Changed: true, State: state, Effects: s.effects, UnusedParts: unused}
}

// deadLetterUnapplied returns the effects of an event that cannot be applied: its record is dead-lettered, and a message gets
// an error output. A deadline has no effects.
func deadLetterUnapplied(event event, reason string, f failure, now time.Time, rules rules) []effect {
	record := event.source()
	if record == nil {
		return nil
	}
	effects := []effect{deadLetter{Reason: reason}}
	e, ok := event.(messageArrived)
	if !ok || e.tombstone() || e.hasToolRole() {
		return effects
	}
	a, _ := accept(e, rules)
	o := rules.errorOutput(f)
	address(&o, e.Session, a)
	o.ReplyTo, o.UserID, o.Timestamp = ownRoute(a), a.UserId, topics.Timestamp(now)
	return append(effects, emit{Key: e.Session, ID: outputID(a.TurnId, 0, answered(o), 0), Value: answered(o)})
}

// deadLetterForSize returns the effects of a record that does not fit into the row even as a memory. The output of a message
// goes to the route of its request; a route without a request id is kept for the next message.
func (s *transition) deadLetterForSize(event event) []effect {
	effects := deadLetterUnapplied(event, reasonRowSize, tooLarge("the session's row is over its limit"), s.now, s.rules)
	for i, refused := range effects {
		for _, effect := range s.effects {
			a, ok := effect.(emit)
			b, same := refused.(emit)
			if !ok || !same || a.ID != b.ID {
				continue
			}
			o := a.Value.(answered)
			if o.RequestID == nil {
				o.ReplyTo = b.Value.(answered).ReplyTo
			}
			a.Value = o
			effects[i] = a
		}
	}
	return effects
}
