package turn

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

func (s *transition) receiveResponse(e thinkResponded) {
	r := e.Response
	if e.tombstone() {
		s.forgetConversation()
		return
	}
	same, previous := replyDigest(ofResponse, e.record), messages(r.PreviousMessages)
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
	p, named := s.thinkPlace(e.record, &own)
	if !named {
		own.length, own.anyLength = previous, r.Compaction || r.PreviousMessages == nil
		p = s.echoPlace(&own, echoOf(r))
	}
	s.chargeResponse(e, same, s.payer(own, p, func() topics.Raw { return echoOf(r) }, r.UserID))
	if !s.answersOpenStep(e.record, own, p) {
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
		s.settle(e.record, r)
		if f, ok := s.mayAsk(); !ok {
			s.fail(f)
			return
		}
		s.callTools(r, previous)
	case r.EndTurn:
		s.settle(e.record, r)
		s.answer(r, previous)
	}
	// A response without tools and without an end is not an answer: the step keeps waiting until its deadline.
}

func (s *transition) receiveFailure(e thinkFailed) {
	reason := e.headerText(topics.HeaderErrorReason)
	if e.Failure.Reason != nil {
		reason = *e.Failure.Reason
	}
	if e.tombstone() {
		s.deadLetter(reasonTombstone)
		return
	}
	same := replyDigest(ofFailure, e.record)
	if s.knowsCause(same) {
		s.deadLetter(reasonSameFailure)
		return
	}
	own := workerReply{kind: turnrow.Held_THINK_FAILURE, digest: same, anyLength: true}
	p, named := s.thinkPlace(e.record, &own)
	if !named {
		p = s.failurePlace(&own, e.Failure.LatestInput)
	}
	cost, costs := topics.Cost([]byte(e.headerText(topics.HeaderCost)))
	if costs {
		s.chargeFailure(e.record, cost, s.payer(own, p, func() topics.Raw { return e.Failure.LatestInput }, nil))
	}
	if !s.answersOpenStep(e.record, own, p) {
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

// answer ends the open turn with the content of its last response, and stores the conversation as the history. A response
// without a text is no answer: it ends the turn with an error output. previous is the number of PreviousMessages in the response.
func (s *transition) answer(r topics.ThinkResponse, previous uint32) {
	o := topics.Output{
		UserID:       boundedID(r.UserID),
		InputTokens:  r.ThinkInputTokens,
		OutputTokens: r.ThinkOutputTokens,
		Cost:         r.TotalSessionCost,
	}
	var parts []string
	agent := ""
	elements, _ := topics.Elements(r.LastInputResponse)
	for _, raw := range elements {
		m, err := topics.DecodeMessage(raw)
		if err != nil {
			continue
		}
		if name, ok := topics.Lookup(m.Metadata, "agent"); ok && agent == "" {
			agent = agentName(name)
		}
		if text := topics.Text(m.Content); m.Role != nil && *m.Role == roleReplies && strings.TrimSpace(text) != "" {
			parts = append(parts, text)
		}
	}
	o.Content = strings.Join(parts, "\n\n")
	o.SourceAgent = cmp.Or(agent, s.rules.sourceAgent())
	if o.Content == "" { // of a worker that does not ask the model once more
		empty := s.errorOutput(s.row.Turn.Message, failure{topics.CodeEmptyResponse, "the model's reply is empty"})
		empty.SourceAgent = o.SourceAgent
		s.close(empty)
		return
	}
	if s.sizeOfOutput(o, s.row.Turn.Message) > s.rules.limit(s.rules.accepted.output) {
		s.fail(tooLarge("the answer does not fit into a record"))
		return
	}
	s.turnTail() // requires the tail to be loaded, so that its parts are deleted
	own, _ := s.history()
	kept, keptLength, keptKey := s.storedHistory(), s.row.HistoryLength, s.row.MemoryKey
	s.joinMemory()
	s.row.History, s.row.HistoryLength = conversation(r, previous)
	s.row.Turn.Responded, s.row.Turn.Shared, s.row.Turn.Tail = false, 0, nil
	if !s.makeRoomInHistory(false) {
		s.row.History, s.row.HistoryLength, s.row.MemoryKey = kept, keptLength, keptKey
		s.fail(tooLarge("the conversation does not fit into the session's row"))
		return
	}
	s.hideReplaced(own, kept, s.row.History)
	s.close(o)
}

// agentName returns the text form of metadata.agent.
func agentName(v topics.Raw) string {
	if text := topics.TextOf(v); text != nil {
		return *text
	}
	return "null"
}

// isErrorReport reports whether a response only says that the model's worker failed. FlightDeck's SDK workers write such a
// record to think-request-response before they write the step to think-dlq: the end of the turn, with a text in the field
// messages, without a cost, and without anything that says which step it answers. It must not end a step: the text would
// become the answer, and the history would be lost. The record of think-dlq ends the turn.
func isErrorReport(r topics.ThinkResponse) bool {
	return r.OldMessages && r.EndTurn && r.TotalSessionCost == nil && r.PreviousMessages == nil && echoOf(r) == nil &&
		len(r.ToolUses)+len(r.NullToolUses) == 0
}

// complete returns a response to the open step with what its worker left out, and the number of its previous messages. So
// the history grows by every answer, whatever a worker omits.
//
// The exception is the response of older images: a list of messages that begins with the step's own. It is the whole
// conversation.
func (s *transition) complete(r topics.ThinkResponse, previous uint32) (topics.ThinkResponse, uint32) {
	if blank(r.UserID) {
		r.UserID = s.user(s.row.Turn.Message)
	}
	if r.PreviousMessages != nil || r.LastInputMessage == nil && s.beginsWithPrompt(r.LastInputResponse) {
		return r, previous
	}
	r.PreviousMessages, previous = s.history()
	if r.LastInputMessage == nil {
		r.LastInputMessage = s.turnPrompt()
	}
	return r, previous
}

// beginsWithPrompt reports whether the first of some messages is the one that the open step sent to the model: one of the
// same role and content.
func (s *transition) beginsWithPrompt(messages topics.Raw) bool {
	elements, _ := topics.Elements(messages)
	if len(elements) == 0 {
		return false
	}
	first, err := topics.DecodeMessage(elements[0])
	if err != nil {
		return false
	}
	if d := inputDigest(first); bytes.Equal(d[:], s.row.Turn.Input) {
		return true
	}
	sent, err := topics.DecodeMessage(s.turnPrompt())
	return err == nil && roleAndContent(first) == roleAndContent(sent)
}
