package turn

import (
	"bytes"
	"encoding/binary"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// A closed think step is remembered as the digest of its input and the number of messages in its history, so that a late or
// repeated response to it is not taken for the answer to the open step.
const stepSize = digestSize + 4

// inputDigest returns the digest of a step's input by value: role, timestamp, content. The timestamp of a tool message is
// left out, because a replay after a crash writes a new one; the tool_use_ids in its content identify the message.
func inputDigest(m topics.Message) digest {
	if m.Role != nil && *m.Role == roleTool {
		m.Timestamp = nil
	}
	d := topics.DigestOf(m)
	return digest(d[:digestSize])
}

// digestOf returns the digest of an input. ok is false if the input cannot be decoded.
func (s *transition) digestOf(input topics.Raw) (d digest, ok bool) {
	if turn := s.row.Turn; len(turn.GetInput()) == digestSize && turnSent(turn, s.layout.fields[prompt].full, input) {
		return digest(turn.Input), true
	}
	m, err := topics.DecodeMessage(input)
	if err != nil {
		return digest{}, false
	}
	return inputDigest(m), true
}

// turnSent reports whether message is byte for byte what the open step sent to the model. cached is the cached prompt; it
// reports false if the prompt is in parts and is not cached. Outcomes do not depend on it: it saves decoding the message.
func turnSent(t *turnrow.OpenTurn, cached, message []byte) bool {
	asked := t.GetPrompt()
	if len(t.GetPromptParts()) > 0 {
		asked = cached
	}
	return len(asked) > 0 && bytes.Equal(asked, message)
}

// rememberStep remembers the open step, if there is one, as closed. Held replies that name the step by their echo are
// dead-lettered: it takes no second reply.
func (s *transition) rememberStep() {
	turn := s.row.Turn
	if len(turn.Input) != digestSize {
		return
	}
	steps := append(withRoom(s.row.Steps, stepSize), turn.Input...)
	steps = binary.BigEndian.AppendUint32(steps, turn.InputHistoryLength)
	s.row.Steps = lastSteps(steps)
	s.giveUpEarly(reasonOtherStep, func(h *turnrow.Held) bool {
		return echoes(h, turn.Input) && (h.AnyLength || h.InputHistoryLength == turn.InputHistoryLength)
	})
	turn.Input, turn.Prompt, turn.PromptParts = nil, nil, nil
}

// echoPlace returns the place of the step that a response names by its echo, for a response whose id names none.
//
// The echo may be missing or altered. The response then counts for the open step unless something contradicts that. If
// the echo matches the open step and a closed one, because the same input was sent twice, the length of the echoed history
// decides. A worker that compacts the history echoes a different length, so any length matches.
//
// After a crash the row may be older than the responses on the topic, so a response may name a step that has not opened:
// its input is a waiting message or one that was not read yet, and its history is at least as long as the session's. Such
// a response is applied only to a step with that input and that history.
func (s *transition) echoPlace(r *workerReply, echo topics.Raw) place {
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

// failurePlace is echoPlace for a failure. The worker returns the unchanged record that it failed on, so a different input
// means a different step. A failure without an input counts for the open step.
func (s *transition) failurePlace(r *workerReply, input topics.Raw) place {
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

// openPlace returns the place of a record that names no step: it answers the open step, if there is one.
func (s *transition) openPlace() place {
	if s.thinking() {
		return stepOpen
	}
	return stepEnded
}

// closedStep reports whether a remembered closed step had that input, and whether one also had a history of that length.
func (s *transition) closedStep(d digest, length uint32) (closed, sameLength bool) {
	for steps := s.row.Steps; len(steps) >= stepSize; steps = steps[stepSize:] {
		if digest(steps[:digestSize]) == d {
			closed = true
			sameLength = sameLength || binary.BigEndian.Uint32(steps[digestSize:]) == length
		}
	}
	return closed, sameLength
}

// namesWaiting reports whether d is the digest of a message that waits for its turn.
func (s *transition) namesWaiting(d digest) bool {
	for _, a := range s.row.Waiting {
		if m, err := topics.DecodeMessage(a.Input); err == nil && inputDigest(m) == d {
			return true
		}
	}
	return false
}

// echoOf returns the input that a response echoes: last_input_message, or in a legacy response the last message that is
// not the model's.
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
