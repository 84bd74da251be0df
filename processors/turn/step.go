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

// rememberStep remembers the open step, if there is one, as closed.
func (s *session) rememberStep() {
	turn := s.row.Turn
	if len(turn.Input) != digestSize {
		return
	}
	steps := append(withRoom(s.row.Steps, stepSize), turn.Input...)
	steps = binary.BigEndian.AppendUint32(steps, turn.InputHistoryLength)
	s.row.Steps = lastSteps(steps)
	turn.Input = nil
	s.asked = asked{}
}

// lastSteps is what is remembered of steps.
func lastSteps(steps []byte) []byte { return steps[max(0, len(steps)-maxSteps*stepSize):] }

// namesAnother reports whether a response names another step than the open one. What the response echoes may be missing
// or altered: then it names none. Where it names the open step and a closed one, because the same was asked twice, the
// length of the history that it echoes decides; workers that compact have another length, and any counts.
//
// After a crash the row may be older than the responses that are on the topic, so a response may name a step that is
// still to come: its input is a message that waits, or it had more history than the open step has.
func (s *session) namesAnother(echo topics.Raw, length uint32, anyLength bool) bool {
	d, ok := s.digestOf(echo)
	if !ok {
		return false
	}
	open := bytes.Equal(d[:], s.row.Turn.Input)
	if open && anyLength {
		return false
	}
	if !open && s.namesWaiting(d) {
		return true
	}
	closed, sameLength := false, false
	for steps := s.row.Steps; len(steps) >= stepSize; steps = steps[stepSize:] {
		if digest(steps[:digestSize]) == d {
			closed = true
			sameLength = sameLength || binary.BigEndian.Uint32(steps[digestSize:]) == length
		}
	}
	if !open {
		return closed || length > s.row.Turn.InputHistoryLength
	}
	return sameLength && length != s.row.Turn.InputHistoryLength
}

// isAsked reports whether an input is what the open step asked. The worker that gave up hands back the record it was
// given, as it was: another input is another step's. No input names none.
func (s *session) isAsked(input topics.Raw) bool {
	d, ok := s.digestOf(input)
	return !ok || bytes.Equal(d[:], s.row.Turn.Input)
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
