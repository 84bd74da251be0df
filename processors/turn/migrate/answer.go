package migrate

import "github.com/turntable-streams/turntable/topics"

const (
	roleAssistant = "assistant"
	roleTool      = "tool"
)

// isErrorReport reports whether a record only says that the model's worker failed. FlightDeck's SDKs write it in the field
// messages, without a cost and without a prompt. It is no answer.
func isErrorReport(r topics.ThinkResponse) bool {
	return r.OldMessages && r.EndTurn && r.TotalSessionCost == nil && r.PreviousMessages == nil && !hasPrompt(r) &&
		len(r.ToolUses)+len(r.NullToolUses) == 0
}

// hasPrompt reports whether a record has the message that it answers.
func hasPrompt(r topics.ThinkResponse) bool {
	return r.LastInputMessage != nil || firstRole(r) != roleAssistant
}

// answers reports whether a record ends a turn. The history after any other record has tool calls without results, which
// providers reject.
func answers(r topics.ThinkResponse) bool {
	return r.EndTurn && len(r.ToolUses)+len(r.NullToolUses) == 0
}

// appends reports whether a record has only its own exchange and not the history before it: older images of FlightDeck
// write such records, and workers that omit the history.
func appends(r topics.ThinkResponse) bool { return r.PreviousMessages == nil }

// continues reports whether a record's exchange belongs to the turn of the record before it: it does not begin with a
// message of a user.
func continues(r topics.ThinkResponse) bool {
	role := firstRole(r)
	return role == roleTool || role == roleAssistant
}

// firstRole returns the role of the first message of a record's exchange, "" if it has none.
func firstRole(r topics.ThinkResponse) string {
	first := r.LastInputMessage
	if first == nil {
		elements, _ := topics.Elements(r.LastInputResponse)
		if len(elements) == 0 {
			return ""
		}
		first = elements[0]
	}
	m, err := topics.DecodeMessage(first)
	if err != nil || m.Role == nil {
		return ""
	}
	return *m.Role
}

// exchange returns the messages of a record, without those that it has only repeated if it appends.
func exchange(r topics.ThinkResponse) topics.Raw {
	return topics.Splice(r.PreviousMessages, r.LastInputMessage, r.LastInputResponse)
}

// costAfter returns the session's cost after a record. Older images write the cost of the call alone.
func costAfter(before *float64, r topics.ThinkResponse) *float64 {
	switch {
	case r.TotalSessionCost == nil:
		return before
	case before != nil && r.OldMessages && appends(r) && r.PreviousSessionCost == nil:
		sum := *before + *r.TotalSessionCost
		return &sum
	default:
		return r.TotalSessionCost
	}
}
