package turn

import (
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// open starts the turn of an accepted message. read is the decoded message, or nil to decode it from a.
func (s *transition) open(a *turnrow.Accepted, read *topics.Message) {
	input := topics.Raw(a.Input)
	a.Input = nil
	s.row.Turn = &turnrow.OpenTurn{Message: a}
	if s.rules.Events {
		s.row.Turn.Stream = &turnrow.TurnStream{}
	}
	f, ok := s.mayAsk()
	switch {
	case !ok:
		s.fail(f)
	case !s.makeRoomInHistory(true): // before the model is asked, which costs money
		s.fail(tooLarge("no room for a turn in the session's row"))
	case s.askForSummary(input):
	default:
		s.begin(input, read)
	}
}

// begin opens the first think step of the open turn.
func (s *transition) begin(input topics.Raw, read *topics.Message) {
	s.limitHistory()
	if !s.think(input, read, s.rules.BothSpellings) {
		s.fail(tooLarge("the message does not fit into a record"))
	}
}

// think opens the next think step of the open turn. It does nothing and reports false if the record for the model would be
// too large. read is the decoded input, or nil to decode it. The record has both spellings if both is true and they fit.
func (s *transition) think(input topics.Raw, read *topics.Message, both bool) bool {
	turn := s.row.Turn
	history, length := s.history()
	record := Enriched{
		SessionID:   &s.key,
		UserID:      s.user(turn.Message),
		Cost:        s.row.Cost,
		History:     history,
		LatestInput: input,
		Timestamp:   s.timestamp(),

		EphemeralPrompt: turn.Message.EphemeralPrompt,
		BothSpellings:   both,
	}
	over := s.sizeOfEnriched(record) - s.rules.limit(s.rules.accepted.model)
	hidden := over > 0 && s.hideFor(over, !turn.Responded)
	if over > 0 && !hidden && record.BothSpellings {
		record.BothSpellings = false
		over = s.sizeOfEnriched(record) - s.rules.limit(s.rules.accepted.model)
		hidden = over > 0 && s.hideFor(over, !turn.Responded)
	}
	switch {
	case hidden:
		record.History, length = s.history()
	case over > 0:
		return false
	}
	if read == nil {
		message, err := topics.DecodeMessage(input)
		if err != nil {
			return false // does not happen: this package encoded the input
		}
		read = &message
	}
	asked := inputDigest(*read)
	turn.Step++
	turn.Calls = nil
	turn.Input, turn.InputHistoryLength = asked[:], length
	turn.Prompt, turn.PromptParts = input, nil
	turn.DeadlineMs, turn.StoppedMs = s.after(s.rules.ThinkTimeout), 0
	s.setClock()
	if s.streams() {
		record.TurnID, record.Step = turn.Message.TurnId, int64(turn.Step)
	}
	s.emit(turn.Message.TurnId, turn.Step, record, 0)
	s.streamStart()
	return true
}

// close ends the open turn with its output, gives up its held records, and opens the turn of the next waiting message.
func (s *transition) close(o topics.Output) {
	turn := s.row.Turn
	if len(s.row.OtherGates) > 0 {
		s.withdrawOthers(s.endCause())
	}
	s.cannotAsk = false
	s.rememberStep()
	s.streamEnd(o)
	s.row.Turn = nil
	dropMemoryKey(s.row)
	if s.rules.Memoir != nil || s.row.LastTurn != "" { // an instance without it may run beside others: IDs of ends must be new
		s.row.LastTurn = turn.Message.TurnId
	}
	s.output(turn.Message, o)
	for _, h := range turn.Held {
		s.giveUp(h, reasonUnclaimed)
	}
	s.changed = true
	s.next()
}

// next opens the turn of the first waiting message, unless a turn is open or the session is being purged.
func (s *transition) next() {
	if s.row.Turn != nil || len(s.row.Waiting) == 0 || s.purging {
		return
	}
	first := s.row.Waiting[0]
	s.row.Waiting = s.row.Waiting[1:]
	s.open(first, nil)
}
