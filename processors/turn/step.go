package turn

import (
	"bytes"
	"encoding/binary"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// inputDigest returns the digest of a step's input by value: role, timestamp, content. The timestamp of a tool message is
// left out, because a replay after a crash writes a new one; the tool_use_ids in its content identify the message.
func inputDigest(m topics.Message) digest {
	if m.Role != nil && *m.Role == roleTool {
		m.Timestamp = nil
	}
	d := topics.DigestOf(m)
	return digest(d[:digestSize])
}

// roleAndContent returns the digest of a message's role and content.
func roleAndContent(m topics.Message) digest {
	return inputDigest(topics.Message{Role: m.Role, Content: m.Content})
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

// isDue reports whether a held record can be applied now: its step is open, or can no longer open.
func (s *session) isDue(h *turnrow.Held) bool {
	turn := s.row.Turn
	if h.TurnId != "" { // a record that names a turn is given up when that turn ends
		return turn != nil && turn.Message.GetTurnId() == h.TurnId && h.Step <= turn.Step
	}
	return s.thinking() && bytes.Equal(turn.Input, h.Input) &&
		(h.AnyLength || turn.InputHistoryLength == h.InputHistoryLength)
}

// releaseEarly gives up the records that are held for a message that has its output.
func (s *transition) releaseEarly(a *turnrow.Accepted) {
	var input digest
	named := false
	if len(s.row.Early) > 0 && a.Input != nil { // the message ended without a turn
		input, named = s.digestOf(a.Input)
	}
	s.giveUpEarly(reasonTurnEnded, func(h *turnrow.Held) bool {
		return h.TurnId == a.TurnId || h.TurnId == "" && named && bytes.Equal(h.Input, input[:])
	})
}
