package turn

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// The workers of packages think and tools derive the id of what they write from the id of the record that they answer.
// So the id of a response, a failure or a result says which step it answers, also where the row is older than the step:
// a crash can lose the row of an output that was acknowledged and answered. Other workers may name their records in the
// same way: the id of the record that is answered, alone or with a slash and more behind it.

// stepName is the output that a record answers: a step's enriched message, or one of its calls.
type stepName struct {
	turn string
	step uint32
	call uint32 // the index of the call; 0 for an enriched message
}

// namedStep is the output of a kind that a record's id names; ok is false where it names none.
func namedStep(r *Record, kind string) (n stepName, ok bool) {
	if !r.Own {
		return n, false
	}
	turn, rest, _ := strings.Cut(r.Cause, "/")
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

// number reads a number as outputID writes it.
func number(text string) (uint32, bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err == nil && (text == "0" || text[0] >= '1' && text[0] <= '9')
}

// turnDigest is the digest that a turn's id is the text of; ok is false for what is no id of a turn.
func turnDigest(id string) (d digest, ok bool) {
	if len(id) != hex.EncodedLen(digestSize) {
		return d, false
	}
	_, err := hex.Decode(d[:], []byte(id))
	return d, err == nil
}

// place is where the step that a record answers stands.
type place int

const (
	// stepEnded is a step that waits for no such record any more.
	stepEnded place = iota
	// stepOpen is the open step.
	stepOpen
	// stepToCome is a step that has not opened yet.
	stepToCome
)

// placeOf says where a named step stands. A turn that is neither open nor known to have ended is still to come: its
// message is yet to be read, or waits.
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

// rememberEnded remembers that a message has its output: what answers its turn from now on is late.
func (s *session) rememberEnded(a *Accepted) {
	if d, ok := turnDigest(a.TurnId); ok {
		s.rememberCause(d)
	}
}
