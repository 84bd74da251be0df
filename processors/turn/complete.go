package turn

import (
	"bytes"

	"github.com/turntable-streams/turntable/topics"
)

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
