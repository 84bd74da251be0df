package turn

import (
	"slices"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

var internal = failure{topics.CodeInternal, "internal error"}

// surrender takes an event that cannot be applied: its record is dead-lettered, its message answered, and the row
// stays. For a deadline the turn ends here, or nothing would ever end it.
func (b *binding) surrender(c *processors.Context, e Event, cause error) error {
	var out Outcome
	var gone []uint32
	if e.record() != nil {
		out.Effects = refuseUnapplied(e, cause.Error(), internal, c.Now())
	} else if state, err := StateOf(c.Value()); err == nil {
		out, gone = abandon(state, c.Key(), c.Now())
	}
	d, err := b.encode(out.Effects)
	if err != nil {
		return err
	}
	if d.changed = out.Changed; d.changed {
		d.gone = gone
		if d.row, err = EncodeState(out.State); err != nil {
			return err
		}
	}
	return b.perform(c, d)
}

// abandon ends all that is open in a session, by the shortest way there is: error outputs with code internal, without
// routes, for what was accepted, and dead letters for what was held. Conversation, cost and memory stay; the parts of the turn are to go.
func abandon(state *State, key string, now time.Time) (out Outcome, gone []uint32) {
	if state == nil {
		return Outcome{}, nil
	}
	s := &session{row: state, key: key, now: now}
	for a := range s.unfinished() {
		if a == nil {
			continue
		}
		o := errorOutput(internal)
		o.SessionID, o.UserID, o.RequestID = &s.key, a.UserId, a.RequestId
		o.Cost, o.Timestamp = state.Cost, instant(now)
		s.emit(a.TurnId, 0, Answered(o), 0)
	}
	for _, h := range slices.Concat(state.Early, state.Turn.GetHeld()) {
		s.giveUp(h, reasonTurnEnded)
	}
	gone = slices.Concat(numbers(state.Turn.GetTailParts()), numbers(state.Turn.GetResultsParts()))
	state.Turn, state.Waiting, state.Routes, state.Early, state.DeadlineMs = nil, nil, nil, nil, 0
	state.Version = state.format()
	return Outcome{Changed: true, State: state, Effects: s.effects}, gone
}
