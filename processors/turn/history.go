package turn

import (
	"bytes"

	"github.com/turntable-streams/turntable/topics"
)

// storedHistory returns the session's history.
func (s *transition) storedHistory() topics.Raw {
	s.load(history)
	return s.row.History
}

// turnTail returns the open turn's conversation after the prefix that it shares with the history.
func (s *transition) turnTail() topics.Raw {
	s.load(tail)
	return s.row.Turn.Tail
}

// turnPrompt returns the message that the open step sent to the model, nil if the row had no room for it.
func (s *transition) turnPrompt() topics.Raw {
	s.load(prompt)
	return s.row.Turn.Prompt
}

// history returns the conversation that the open turn builds on, and its number of messages.
func (s *transition) history() (topics.Raw, uint32) {
	turn := s.row.Turn
	if turn == nil || !turn.Responded {
		return s.storedHistory(), s.row.HistoryLength
	}
	stored, tail := s.storedHistory(), s.turnTail()
	if s.err != nil {
		return nil, turn.HistoryLength
	}
	whole := make(topics.Raw, 0, int(turn.Shared)+len(tail))
	whole = append(whole, stored[:turn.Shared]...)
	return append(whole, tail...), turn.HistoryLength
}

// historySize returns the length of history in bytes.
func (s *transition) historySize() int {
	stored := len(s.storedHistory())
	if turn := s.row.Turn; turn != nil && turn.Responded {
		return int(turn.Shared) + len(s.turnTail())
	}
	return stored
}

// shareConversation stores the conversation that the open turn builds on, as the number of bytes that it shares with the session's
// history and the tail after them. length is its number of messages.
func (s *transition) shareConversation(whole topics.Raw, length uint32) {
	turn := s.row.Turn
	s.turnTail() // requires the tail to be loaded, so that its parts are deleted
	shared := sharedLength(whole, s.storedHistory())
	tail := whole
	if shared > 0 {
		tail = bytes.Clone(whole[shared:]) // copied, because a slice would keep the whole conversation in memory
	}
	turn.Responded, turn.Shared, turn.Tail, turn.HistoryLength = true, uint64(shared), tail, length
}
