package turn

import (
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// A turn opens with its message. If the history is too long, it asks the compactor for a summary; then it asks the model. A
// response with calls lets it wait for their results (call.go), and with the last one it asks the model again. It closes with an
// answer (think.go) or fails with an error, and the next waiting message gets its turn.

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

// askForSummary asks the compactor if the history exceeds its limit. It reports false if it did not: the turn's first step
// can open. Otherwise the turn keeps its input until the result arrives.
func (s *transition) askForSummary(input topics.Raw) bool {
	turn, rules := s.row.Turn, s.rules.Compaction
	if rules == nil || !s.overHistoryLimit() {
		return false
	}
	keep := s.rules.historyLimit().below()
	keep.exchanges = rules.Keep
	cut := cutFront(s.row.History, keep, false)
	request := compactionRequested{
		SessionID: &s.key, UserID: s.user(turn.Message), CompactionID: compactionID(turn.Message), Timestamp: s.timestamp(),
		Messages: append(append(topics.Raw(nil), s.row.History[:cut.bytes]...), ']'),
	}
	size := envelope + 2*s.keySize() + quoted(request.UserID) + len(request.Messages)
	if cut.bytes == 0 || size > s.rules.limit(s.rules.accepted.compaction) {
		return false
	}
	turn.Message.Input, turn.Compaction = input, &turnrow.Compacting{Front: uint64(cut.bytes)}
	if !s.makeRoom() {
		turn.Message.Input, turn.Compaction = nil, nil
		return false
	}
	turn.DeadlineMs = s.after(rules.Timeout)
	s.emit(turn.Message.TurnId, 0, request, 0)
	return true
}

// compactionID names the request of a turn's compaction: it is the request's turntable.id.
func compactionID(a *turnrow.Accepted) string {
	return outputID(a.GetTurnId(), 0, compactionRequested{}, 0)
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
	record := enriched{
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

// completeStep asks the model again once all calls have their results.
func (s *transition) completeStep() {
	turn := s.row.Turn
	if countOpenCalls(turn) > 0 {
		return
	}
	if f, ok := s.mayAsk(); !ok { // the limits were lowered
		s.fail(f)
		return
	}
	if !s.collectResults() {
		return
	}
	both := s.rules.BothSpellings && s.makeRoomForResults(true)
	if !both {
		s.makeRoomForResults(false)
	}
	with, fits := s.fitResults(s.roomForResults(both), both)
	if s.rules.BothSpellings && !both && s.excess(s.roomForResults(true), copies{text: true}) <= 0 { // the results were shortened
		both = true
		with, fits = s.fitResults(s.roomForResults(true), true)
	}
	message := topics.Message(s.emitResults(with))
	input := topics.EncodeMessage(message)
	message.Content = s.sortedContent(len(message.Content), both)
	if fits && s.think(input, &message, both) {
		return
	}
	turn.Calls = nil
	s.fail(tooLarge("the conversation and the tools' results do not fit into a record"))
}

// makeRoomForResults hides exchanges until the record for the model has room for the results. It reports false if there is
// not enough to hide, or nothing that would help.
func (s *transition) makeRoomForResults(both bool) bool {
	over := s.sizeOfToolMessage(copies{text: both}) - s.roomForResults(both)
	return over <= 0 || s.hideFor(spellings(both)*over, false)
}

// roomForResults returns the size of the largest tool message that fits into the record for the model, in one or both
// spellings.
func (s *transition) roomForResults(both bool) int {
	user, inputs := s.user(s.row.Turn.Message), spellings(both)
	around := envelope + 2*s.keySize() + promptSize(s.row.Turn.Message.EphemeralPrompt) + inputs*quoted(user) +
		s.rules.memoryRoom(user, both)
	return min((s.rules.limit(s.rules.accepted.model)-around-s.historySize())/inputs, s.rules.limit(s.rules.accepted.input))
}

// fail ends the open turn in an error output. The history stays as it was before the turn, because it has no answer. The
// cost keeps its current value, because the turn's model requests were paid for.
func (s *transition) fail(f failure) {
	s.completeOpenCalls(f)
	s.close(s.errorOutput(s.row.Turn.Message, f))
}

// completeOpenCalls ends the open calls of a turn that is ending, so that every call has exactly one result. The model
// is not asked again.
func (s *transition) completeOpenCalls(f failure) {
	turn := s.row.Turn
	if len(turn.Calls) == 0 {
		return
	}
	s.endOpenCalls(f.text, string(f.code))
	if !s.collectResults() {
		return
	}
	text := s.rules.BothSpellings && s.excess(s.rules.limit(s.rules.accepted.input), copies{text: true}) <= 0
	with, _ := s.fitResults(s.rules.limit(s.rules.accepted.input), text)
	s.emitResults(with)
	turn.Calls = nil
}

// endOpenCalls ends the open calls with errors and withdraws their gates.
func (s *transition) endOpenCalls(text, reason string) {
	calls := s.row.Turn.Calls
	for i, c := range calls {
		if ended(c) {
			continue
		}
		end := s.endCall
		if c.Gate != nil { // it never ran
			end = s.keepEnd
		}
		s.withdrawGate(i, s.endCause())
		end(c, s.synthesise(c.ToolUseId, c.Name, len(calls), 0, text, reason))
	}
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
	if first := s.takeWaiting(); first != nil {
		s.open(first, nil)
	}
}
