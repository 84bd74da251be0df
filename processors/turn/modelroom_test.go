package turn

import (
	"fmt"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
)

// What the oracle concedes to a small row: that a message, a result, a route or a record that came early finds no room.
// It learns from the transition which of them did, and judges what follows.

// tooLarge reports whether the event ended a message because there was no room. Only small rows may say so, and only
// where much is in them.
func (o *oracle) tooLarge(turn string) (code string, ok bool) {
	text, ok := o.got[turn+"/0/output/0"]
	if !ok || !o.Small {
		return "", false
	}
	code, _, _ = strings.Cut(text, " ")
	return code, code == "error:too_large" || code == "error:queue_full"
}

// giveUp follows the transition where a small row gives up the open turn, or what waits.
func (o *oracle) giveUp() {
	if !o.Small {
		return
	}
	told := func(a acceptedMessage) (code string, ok bool) {
		ended := slices.ContainsFunc(o.want, func(s string) bool { return strings.HasPrefix(s, a.turn+"/0/output/0: ") })
		code, ok = o.tooLarge(a.turn)
		return code, ok && !ended
	}
	for len(o.unfinished) > 0 {
		code, ok := told(o.unfinished[0])
		if !ok {
			break
		}
		o.end(code)
	}
	o.unfinished = slices.DeleteFunc(o.unfinished, func(a acceptedMessage) bool {
		code, ok := told(a)
		if ok {
			o.output(a, code)
		}
		return ok
	})
	o.dropHeld()
}

// dropHeld forgets the held records that a small row gave up.
func (o *oracle) dropHeld() {
	if !o.Small {
		return
	}
	for _, l := range o.letters {
		if l.Held == nil {
			continue
		}
		o.held = slices.DeleteFunc(o.held, func(h heldRecord) bool {
			return h.record.offset == l.Held.Offset && strings.HasSuffix(l.Held.Topic, "-"+h.record.topic)
		})
	}
}

// rowHolds reports whether a record that came early is held in the row. A small row drops the failure of a tool without a
// dead letter, and forgets which calls have ended before it refuses an event.
func (o *oracle) rowHolds(r *modelRecord) bool {
	return slices.ContainsFunc(append(o.state().GetTurn().GetHeld(), o.state().GetEarly()...), func(h *turnrow.Held) bool {
		return h.Offset == r.offset && strings.HasSuffix(h.Topic, "-"+r.topic)
	})
}

// failureClaimed reports whether the call of the open step took the failure that was held for it.
func (o *oracle) failureClaimed(i int) bool {
	if !o.Small {
		return true
	}
	turn := o.unfinished[0].turn
	if text, ok := o.got[fmt.Sprintf("%s/%d/all-complete/0", turn, o.step)]; ok {
		entries := strings.Split(text, "[")
		return i+1 < len(entries) && strings.HasSuffix(entries[i+1], " error:tool_failed]")
	}
	calls := o.state().GetTurn().GetCalls()
	return i < len(calls) && ended(calls[i])
}

// noRoom reports whether the record at hand was refused, as a small row may.
func (o *oracle) noRoom() bool { return o.refusedFor(reasonNoRoom, reasonRowSize) }

func (o *oracle) refusedFor(reasons ...string) bool {
	return o.Small && slices.ContainsFunc(o.letters, func(l deadLetter) bool {
		return l.Held == nil && slices.Contains(reasons, l.Reason)
	})
}
