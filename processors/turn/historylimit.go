package turn

import (
	"bytes"

	"github.com/turntable-streams/turntable/topics"
)

// A turn that begins with a history over Config.HistoryLimit hides the oldest exchanges: the model is no longer sent them. They
// are hidden down to half of the limit, because each time the prompt begins with other messages, a provider's cache of it
// is lost. The newest exchange always stays. Nothing is hidden at the limit while a turn runs, because its conversation
// must stay as the model knows it.
//
// Exchanges are also hidden, during a turn too, if the record for the model would exceed Config.RecordLimit, or if the row
// has no room for the turn. Only those of earlier turns are.
//
// Hidden exchanges stay in the row, in parts that no event reads, until the session is purged or its history is cleared.
// They are the first that a row gives up for room (room.go), the oldest parts first. Without parts, under plain
// goka.NewProcessor, they are dropped at once, because every event would write them again. With Config.Memoir, what is dropped goes
// to the memory of the user (memoirsession.go).

// maxHiddenParts bounds the parts of hidden exchanges, because every event writes the references to them. Only a limit of
// few messages reaches it.
const maxHiddenParts = 64

// historyLimit returns Config.HistoryLimit with the default of its bytes.
func (c *Config) historyLimit() HistoryLimit {
	limit := c.HistoryLimit
	if limit.Bytes == 0 {
		limit.Bytes = c.RowLimit / 2
	}
	return limit
}

// below returns half of the limit, as room for what stays when it is reached.
func (l HistoryLimit) below() room {
	return room{bytes: l.Bytes / 2, messages: (l.Messages + 1) / 2}
}

// overHistoryLimit reports whether the session's history exceeds its limit.
func (s *transition) overHistoryLimit() bool {
	limit := s.rules.historyLimit()
	return len(s.storedHistory()) > limit.Bytes || limit.Messages > 0 && int64(s.row.HistoryLength) > int64(limit.Messages)
}

// limitHistory hides the oldest exchanges of a history that exceeds its limit.
func (s *transition) limitHistory() {
	if s.overHistoryLimit() {
		s.hide(s.row.History, cutFront(s.row.History, s.rules.historyLimit().below(), false))
	}
}

// hideFor makes the conversation that the open turn builds on shorter by at least some bytes. It reports whether it could;
// if it could not, nothing is hidden. If entirely is true, no message has to stay.
func (s *transition) hideFor(least int, entirely bool) bool {
	whole, _ := s.history()
	keep := s.rules.historyLimit().below()
	keep.bytes = min(keep.bytes, len(whole)-least)
	cut := cutFront(whole, keep, entirely)
	if cut.bytes == 0 || len(whole)-cut.size < least || s.err != nil {
		return false
	}
	s.hide(whole, cut)
	return true
}

// hide cuts the front off the conversation that the open turn builds on, which is whole. The front of the session's
// history is cut off too where both are the same.
func (s *transition) hide(whole topics.Raw, cut front) {
	if cut.bytes == 0 || s.err != nil {
		return
	}
	turn, hidden := s.row.Turn, int(0)
	if turn == nil || !turn.Responded {
		hidden = int(s.row.HistoryLength) - cut.kept
		s.row.History, s.row.HistoryLength = withoutFront(whole, cut.bytes), uint32(cut.kept)
	} else {
		hidden = int(turn.HistoryLength) - cut.kept
		stored, rest := s.storedHistory(), withoutFront(whole, cut.bytes)
		if cut.bytes <= int(turn.Shared) {
			stored = withoutFront(stored, cut.bytes)
			s.row.History, s.row.HistoryLength = stored, messages(stored)
		}
		s.shareConversation(rest, uint32(cut.kept))
	}
	s.keepHidden(whole[:cut.bytes])
	s.effects = append(s.effects, Hidden{Bytes: len(whole) - cut.size, Messages: hidden})
	s.changed = true
}

// keepHidden appends the messages in the front of an array to the hidden ones. Those for which there is no room are purged.
func (s *transition) keepHidden(front topics.Raw) {
	if s.layout.parts == nil && s.rules.Memoir == nil {
		return
	}
	front = bytes.TrimLeft(front[len("["):], ", \t\r\n")
	more := make([]byte, 0, len(s.row.Hidden)+len(front)+1)
	s.row.Hidden = append(append(append(more, s.row.Hidden...), front...), ',')
	for s.err == nil && (s.layout.parts == nil && len(s.row.Hidden) > 0 || len(s.row.HiddenParts) >= maxHiddenParts) {
		s.purgeHidden()
	}
}

// purgeHidden removes the oldest part of the hidden exchanges, or those that are in no part. With Config.Memoir it removes all of
// them, which go to the memory. It reports whether there were any.
func (s *transition) purgeHidden() bool {
	switch {
	case s.err != nil:
		return false
	case s.rules.Memoir != nil && hiddenSize(s.row) > 0:
		s.rememberHidden()
	case len(s.row.HiddenParts) > 0:
		s.row.HiddenParts = s.row.HiddenParts[1:]
	case len(s.row.Hidden) > 0:
		s.row.Hidden = nil
	default:
		return false
	}
	return true
}

// hideReplaced keeps the messages that a worker has summarized or dropped: those of the history before the turn, and of the turn's
// own conversation before its last response, that are not in the history after it. They are compared by role and content.
func (s *transition) hideReplaced(own, before, after topics.Raw) {
	if s.rules.Memoir == nil || extends(after, before) && extends(after, own) {
		return
	}
	stays := map[digest]bool{}
	for m := range topics.Messages(after) {
		stays[roleAndContent(m)] = true
	}
	var gone []topics.Raw
	for _, conversation := range []topics.Raw{before, own} {
		for _, at := range elementsOf(conversation) {
			raw := conversation[at.from:at.to]
			m, err := topics.DecodeMessage(raw)
			if d := roleAndContent(m); err == nil && !stays[d] {
				stays[d], gone = true, append(gone, raw)
			}
		}
	}
	if len(gone) > 0 {
		front := topics.Splice(gone...)
		s.keepHidden(front[:len(front)-bracket])
	}
}
