package turn

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
)

// The workers of packages think and tools derive the turntable.id of a record from that of the record that they answer.
// The id of a response, a failure or a result therefore names the step that it answers, even if the row is older than the
// step: a crash can lose the row of an output that was acknowledged and answered. Other workers may do the same: the id
// is that of the answered record, optionally followed by a slash and more text.

// stepName is the output that a record answers: a step's enriched message, or one of its calls.
type stepName struct {
	turn string
	step uint32
	call uint32 // the index of the call; 0 for an enriched message
}

// namedStep returns the output of the given kind that a record's id names. ok is false if it names none.
func namedStep(r *record, kind string) (n stepName, ok bool) {
	if !r.Own {
		return n, false
	}
	return parseStepName(r.Cause, kind)
}

// parseStepName returns the output of the given kind that an id names. ok is false if it names none.
func parseStepName(id, kind string) (n stepName, ok bool) {
	turn, rest, _ := strings.Cut(id, "/")
	step, rest, _ := strings.Cut(rest, "/")
	named, rest, _ := strings.Cut(rest, "/")
	index, _, _ := strings.Cut(rest, "/")
	if _, ok = turnDigest(turn); !ok || named != kind {
		return n, false
	}
	n.turn = turn
	var stepOK, indexOK bool
	n.step, stepOK = number(step)
	n.call, indexOK = number(index)
	return n, stepOK && indexOK && n.step > 0
}

// number parses a number in the form that outputID writes.
func number(text string) (uint32, bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err == nil && (text == "0" || text[0] >= '1' && text[0] <= '9')
}

// turnDigest decodes a turn's id. ok is false if id is not that of a turn.
func turnDigest(id string) (d digest, ok bool) {
	if len(id) != hex.EncodedLen(digestSize) {
		return d, false
	}
	_, err := hex.Decode(d[:], []byte(id))
	return d, err == nil
}

// rememberEnded remembers that a message has its output, so that later answers to its turn are recognised as late.
func (s *transition) rememberEnded(a *turnrow.Accepted) {
	if d, ok := turnDigest(a.TurnId); ok {
		s.rememberCause(d)
	}
}

// hasEnded reports whether the turn of a message is remembered as ended.
func (s *session) hasEnded(id string) bool {
	ended, ok := turnDigest(id)
	return ok && s.knowsCause(ended)
}

// hasTurn reports whether the turn of a message is open, waits or is remembered as ended: the message is a repeat. Its
// own record may be forgotten, because other records arrived while it waited.
func (s *session) hasTurn(id string) bool { return s.accepted(id) != nil || s.hasEnded(id) }

// place is the state of the step that a record answers.
type place int

const (
	// stepEnded is a step that no longer waits for such a record.
	stepEnded place = iota
	// stepOpen is the open step.
	stepOpen
	// stepToCome is a step that has not opened yet.
	stepToCome
)

// placeOf returns the place of a named step. A turn that is neither open nor remembered as ended has not opened yet: its
// message waits or was not read yet.
func (s *session) placeOf(n stepName) place {
	turn := s.row.Turn
	if turn == nil || turn.Message.GetTurnId() != n.turn {
		if d, ok := turnDigest(n.turn); ok && s.knowsCause(d) {
			return stepEnded
		}
		return stepToCome
	}
	switch {
	case n.step < turn.Step:
		return stepEnded
	case n.step == turn.Step:
		return stepOpen
	default:
		return stepToCome
	}
}
