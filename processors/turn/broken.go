package turn

import (
	"slices"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

var internal = failure{topics.CodeInternal, "internal error"}

// surrender handles an event that cannot be applied. It dead-letters the record, answers the message with an error, and
// leaves the row unchanged. For a deadline it ends the turn, because no other event is certain to end it.
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

// abandon ends everything that is open in a session without running the transition. Accepted messages get error outputs
// with code internal and without routes; held records are dead-lettered. The conversation, the cost and the memories
// stay. gone lists the turn's parts, which the caller deletes.
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
		o.Cost, o.Timestamp = state.Cost, topics.Timestamp(now)
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
