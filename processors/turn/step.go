package turn

import (
	"bytes"
	"encoding/binary"

	"github.com/turntable-streams/turntable/topics"
)

// A closed think step is remembered by what it asked the model, so that a late or repeated response to it is known as
// such (R21): the digest of its input, then the number of messages in its history.
const stepSize = digestSize + 4

// inputDigest is the digest of a step's input by value: role, timestamp, content. A tool message has the time at which
// it was made, which is another one when a crash makes it again: there the tool_use_ids in its content tell.
func inputDigest(m topics.Message) digest {
	if m.Role != nil && *m.Role == roleTool {
		m.Timestamp = nil
	}
	d := topics.DigestOf(m)
	return digest(d[:digestSize])
}

// asked is the input of the open step, as it was sent, and its digest. It is kept beside the state and not in the row:
// an echo of the very bytes need not be read to be known. Outcomes do not depend on it.
type asked struct {
	input  topics.Raw // memory of its own; nil where it is not at hand
	digest digest
}

// digestOf is the digest of an input, ok is false where it cannot be read.
func (s *session) digestOf(input topics.Raw) (d digest, ok bool) {
	if s.asked.input != nil && bytes.Equal(input, s.asked.input) {
		return s.asked.digest, true
	}
	m, err := topics.DecodeMessage(input)
	if err != nil {
		return digest{}, false
	}
	return inputDigest(m), true
}

// rememberStep remembers the open step, if there is one, as closed. Held replies that name the step by their echo are
// dead-lettered: it takes no second reply.
func (s *session) rememberStep() {
	turn := s.row.Turn
	if len(turn.Input) != digestSize {
		return
	}
	steps := append(withRoom(s.row.Steps, stepSize), turn.Input...)
	steps = binary.BigEndian.AppendUint32(steps, turn.InputHistoryLength)
	s.row.Steps = lastSteps(steps)
	s.giveUpEarly(reasonOtherStep, func(h *Held) bool {
		return h.echoes(turn.Input) && (h.AnyLength || h.InputHistoryLength == turn.InputHistoryLength)
	})
	turn.Input = nil
	s.asked = asked{}
}

// lastSteps is what is remembered of steps.
func lastSteps(steps []byte) []byte { return steps[max(0, len(steps)-maxSteps*stepSize):] }

// echoPlace says where the step stands that a response names by its echo, for a response whose id names none.
//
// What the response echoes may be missing or altered. While a step is open it then names that one, as long as nothing
// says otherwise. Where the echo names the open step and a closed one, because the same was asked twice, the length of
// the history that it echoes decides; workers that compact have another length, and any counts.
//
// After a crash the row may be older than the responses that are on the topic, so a response may name a step that is
// still to come: its input is a message that waits, or one that was never seen, and it has no less history than the
// session. It is applied to a step with that input and that history alone.
func (s *session) echoPlace(r *workerReply, echo topics.Raw) place {
	d, ok := s.digestOf(echo)
	turn, thinking := s.row.Turn, s.thinking()
	if !ok {
		return s.openPlace()
	}
	r.input = d
	length, anyLength := r.length, r.anyLength
	closed, same := s.closedStep(d, length)
	if thinking && bytes.Equal(d[:], turn.Input) {
		if anyLength || !same || length == turn.InputHistoryLength {
			return stepOpen
		}
		return stepEnded
	}
	switch {
	case s.namesWaiting(d):
		if same || closed && anyLength {
			return stepEnded
		}
		return stepToCome
	case closed:
		return stepEnded
	case thinking && length <= turn.InputHistoryLength:
		return stepOpen
	case !thinking && !anyLength && length < s.row.HistoryLength:
		return stepEnded
	default:
		return stepToCome
	}
}

// failurePlace is echoPlace for a failure. The worker that gave up hands back the record it was given, as it was:
// another input is another step's. No input names none.
func (s *session) failurePlace(r *workerReply, input topics.Raw) place {
	d, ok := s.digestOf(input)
	if !ok {
		return s.openPlace()
	}
	r.input = d
	if s.thinking() && bytes.Equal(d[:], s.row.Turn.Input) {
		return stepOpen
	}
	if closed, _ := s.closedStep(d, 0); closed {
		return stepEnded
	}
	return stepToCome
}

// openPlace is the place of a record that names no step: it answers the open one, if there is one.
func (s *session) openPlace() place {
	if s.thinking() {
		return stepOpen
	}
	return stepEnded
}

// closedStep reports whether a remembered closed step had that input, and whether one also had a history of that length.
func (s *session) closedStep(d digest, length uint32) (closed, sameLength bool) {
	for steps := s.row.Steps; len(steps) >= stepSize; steps = steps[stepSize:] {
		if digest(steps[:digestSize]) == d {
			closed = true
			sameLength = sameLength || binary.BigEndian.Uint32(steps[digestSize:]) == length
		}
	}
	return closed, sameLength
}

// namesWaiting reports whether a digest is that of a message that waits for its turn.
func (s *session) namesWaiting(d digest) bool {
	for _, a := range s.row.Waiting {
		if m, err := topics.DecodeMessage(a.Input); err == nil && inputDigest(m) == d {
			return true
		}
	}
	return false
}

// echoOf is the input that a response says it answers: last_input_message, of a legacy response the last of its
// messages that is not the model's.
func echoOf(r topics.ThinkResponse) topics.Raw {
	if r.LastInputMessage != nil {
		return r.LastInputMessage
	}
	elements, _ := topics.Elements(r.LastInputResponse)
	for i := len(elements) - 1; i >= 0; i-- {
		m, err := topics.DecodeMessage(elements[i])
		if err == nil && m.Role != nil && *m.Role != roleReplies {
			return elements[i]
		}
	}
	return nil
}
