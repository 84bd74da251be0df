package turn

import (
	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

func (s *transition) receiveResponse(e ThinkResponded) {
	r := e.Response
	if e.tombstone() {
		s.forgetConversation()
		return
	}
	same, previous := digests.Of(ofResponse, e.Value), messages(r.PreviousMessages)
	switch {
	case r.Known == 0:
		s.deadLetter(reasonNoFields)
		return
	case isErrorReport(r):
		s.deadLetter(reasonErrorReport)
		return
	case s.knowsCause(same):
		s.deadLetter(reasonSameResponse)
		return
	}
	own := workerReply{kind: turnrow.Held_RESPONSE, digest: same}
	p, named := s.thinkPlace(e.Record, &own)
	if !named {
		own.length, own.anyLength = previous, r.Compaction || r.PreviousMessages == nil
		p = s.echoPlace(&own, echoOf(r))
	}
	s.chargeResponse(e, same, s.payer(own, p, func() topics.Raw { return echoOf(r) }, r.UserID))
	if !s.answersOpenStep(e.Record, own, p) {
		return
	}
	s.changed = true
	s.rememberCause(same)
	r, previous = s.complete(r, previous)
	s.spend(s.callCost(r))
	s.row.Cost, s.row.PreviousCost, s.row.ThinkCost = r.TotalSessionCost, r.PreviousSessionCost, r.ThinkCost
	s.keepMemoryKey()
	s.row.UserId = s.turnUser(r.UserID)
	switch {
	case len(r.ToolUses)+len(r.NullToolUses) > 0:
		s.settle(e.Record, r)
		if f, ok := s.mayAsk(); !ok {
			s.fail(f)
			return
		}
		s.callTools(r, previous)
	case r.EndTurn:
		s.settle(e.Record, r)
		s.answer(r, previous)
	}
	// A response without tools and without an end is not an answer: the step keeps waiting until its deadline.
}

// forgetConversation clears a session's history, cost and user. An open turn that has a response continues with its own
// conversation.
func (s *transition) forgetConversation() {
	turn := s.row.Turn
	if s.keepMemoryKey(); turn == nil { // else the model knows the history, and repeats it in its response
		s.row.MemoryKey = ""
	}
	s.storedHistory() // requires the history to be loaded, so that its parts are deleted
	if turn != nil && turn.Responded {
		turn.Tail, _ = s.history()
		turn.Shared = 0
	}
	s.row.History, s.row.HistoryLength, s.row.UserId = nil, 0, nil
	s.row.Cost, s.row.PreviousCost, s.row.ThinkCost, s.row.Spent = nil, nil, nil, nil
	s.row.Hidden, s.row.HiddenParts = nil, nil
	s.row.LastTurn = "" // there is nothing left to remember, unless a turn is open, which names itself when it ends
	if s.compacting() { // there is nothing left to summarize
		s.endCompaction()
	}
	s.changed = true // even if there was nothing: a repeat must not clear a later conversation
}

func (s *transition) receiveFailure(e ThinkFailed) {
	reason := e.headerText(topics.HeaderErrorReason)
	if e.Failure.Reason != nil {
		reason = *e.Failure.Reason
	}
	if e.tombstone() {
		s.deadLetter(reasonTombstone)
		return
	}
	same := digests.Of(ofFailure, e.Value)
	if s.knowsCause(same) {
		s.deadLetter(reasonSameFailure)
		return
	}
	own := workerReply{kind: turnrow.Held_THINK_FAILURE, digest: same, anyLength: true}
	p, named := s.thinkPlace(e.Record, &own)
	if !named {
		p = s.failurePlace(&own, e.Failure.LatestInput)
	}
	cost, costs := topics.Cost([]byte(e.headerText(topics.HeaderCost)))
	if costs {
		s.chargeFailure(e.Record, cost, s.payer(own, p, func() topics.Raw { return e.Failure.LatestInput }, nil))
	}
	if !s.answersOpenStep(e.Record, own, p) {
		return
	}
	if e.Failure.LatestInput != nil { // without an input, two different failures can have the same bytes
		s.rememberCause(same)
	}
	if costs {
		s.spend(&cost)
		s.row.Cost = addCost(s.row.Cost, &cost)
	}
	code := topics.CodeThinkFailed
	switch e.headerText(topics.HeaderReason) {
	case topics.ReasonDeadline:
		code = topics.CodeThinkTimeout // as if the turn's own timer had been first
	case topics.ReasonEmpty:
		code = topics.CodeEmptyResponse
	}
	s.fail(failure{code, "the model's worker gave up"}.withReason(&reason))
}
