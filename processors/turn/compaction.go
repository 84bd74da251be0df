package turn

import (
	"strings"

	"github.com/turntable-streams/turntable/topics"
)

// With Config.Compaction, a turn that begins with a history over its limit asks a compactor for a summary of the oldest
// exchanges before it asks the model, and continues with the summary in their place. It waits until its deadline. Without
// a usable summary it continues as without a compactor: it hides these exchanges. Nothing is asked during a turn, whose
// conversation must stay as the model knows it.

// summaryTitle begins the message of a summary. FlightDeck's model workers use it too.
const summaryTitle = "[Conversation Summary]\n"

func (s *transition) receiveSummary(e compacted) {
	if !e.tombstone() {
		s.chargeSummary(e)
	}
	switch {
	case e.tombstone():
		s.deadLetter(reasonTombstone)
	case !s.compacting() || e.Result.CompactionID != compactionID(s.row.Turn.Message):
		s.deadLetter(reasonNoCompaction)
	default:
		s.changed = true
		s.spend(e.Result.Cost)
		s.row.Cost = addCost(s.row.Cost, e.Result.Cost)
		if e.Result.Error == nil {
			s.summarize(e.Result.Summary)
		}
		s.endCompaction()
	}
}

// endCompaction opens the first step of a turn that waited for the compactor.
func (s *transition) endCompaction() {
	a := s.row.Turn.Message
	input := topics.Raw(a.Input)
	a.Input, s.row.Turn.Compaction = nil, nil
	s.changed = true
	if f, ok := s.mayAsk(); !ok { // the summary reached the cost limit
		s.fail(f)
		return
	}
	s.begin(input, nil)
}

// summarize replaces the front of the history, which the compactor was sent, by its summary. A blank summary, or one that
// leaves the history over its limit, changes nothing.
func (s *transition) summarize(summary string) {
	whole, front := s.storedHistory(), int(s.row.Turn.Compaction.Front)
	if s.err != nil || strings.TrimSpace(summary) == "" || front > len(whole) {
		return
	}
	role, content := roleReplies, summaryTitle+summary
	first := topics.EncodeMessage(topics.Message{
		SessionID: &s.key, UserID: s.user(s.row.Turn.Message), Role: &role, Content: appendText(nil, &content),
		Timestamp: s.timestamp(),
	})
	rest := withoutFront(whole, front)
	short := topics.Splice(first, rest)
	limit, length := s.rules.historyLimit(), messages(rest)+1
	if len(short) > limit.Bytes || limit.Messages > 0 && int64(length) > int64(limit.Messages) {
		return
	}
	hidden := Hidden{Bytes: len(whole) - len(rest), Messages: int(s.row.HistoryLength) - int(length) + 1, Summarized: true}
	s.keepHidden(whole[:front])
	s.row.History, s.row.HistoryLength = short, length
	s.effects = append(s.effects, hidden)
}
