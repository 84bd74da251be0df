package delegation

import (
	"net/url"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/rows/delegationrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// The statuses of the results of tools.
const (
	resultSuccess = "success"
	resultError   = "error"
)

// answerCall writes the result of a call.
func (t *transition) answerCall(e called, status string, value topics.Raw) {
	now := topics.Timestamp(t.timeOf(e.Record))
	machine.Emit(&t.Effects, t.topics.ToolUseResult, t.key, e.ID+"/result", topics.ToolUseResult{
		SessionID: &t.key, ToolUseID: e.Call.ToolUseID, ToolID: e.Call.ToolID, Name: e.Call.Name, Result: value, Status: &status,
		TotalTools: e.Call.TotalTools, Timestamp: &now,
	})
}

// failCall answers a call that failed.
func (t *transition) failCall(e called, reason, text string) {
	t.answerCall(e, resultError, object(member{"error", text}, member{"reason", reason}))
}

// dispatched is the result of a call that began a delegation.
func (t *transition) dispatched(x *delegationrow.Task) topics.Raw {
	text := "The task was handed off to " + x.Target + " and is under way. Tell the user so now. Its result will be announced in this " +
		"conversation later. It can also be read at GET " + readAt(x.CallbackId) + "."
	announced := "true"
	if !t.announces(x.Origin) {
		announced = "false"
		text = "The task was handed off to " + x.Target + " and is under way. This turn belongs to no conversation of a channel, so its result " +
			"will not be announced. It can be read at GET " + readAt(x.CallbackId) + "."
	}
	return topics.Raw(`{"status":"dispatched","announced":` + announced + "," +
		string(object(member{"callback_id", x.CallbackId}, member{"agent_id", x.Target}, member{"message", text})[1:]))
}

// readAt is the path at which package delegationhttp shows a delegation.
func readAt(callbackID string) string { return "/api/delegations/" + url.PathEscape(callbackID) }

type member struct{ name, value string }

// object returns a JSON object of texts. Invalid UTF-8 is replaced.
func object(members ...member) topics.Raw {
	b := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(append(appendText(b, m.name), ':'), m.value)
	}
	return append(b, '}')
}

func appendText(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text) // invalid UTF-8 is replaced
	return b
}

// textValue returns a text as JSON.
func textValue(text string) topics.Raw { return appendText(nil, text) }

// quotedSize returns the size of a text as JSON.
func quotedSize(text string) int { return len(textValue(text)) }

// fit cuts a text until it has at most so many bytes as JSON.
func fit(text string, most int) string {
	for quotedSize(text) > most {
		text = cut(text, max(len(text)*most/quotedSize(text)-8, 0))
	}
	return text
}
