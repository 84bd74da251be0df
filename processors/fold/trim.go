package fold

import "github.com/turntable-streams/turntable/topics"

// Trim cuts messages to their trailing unit: the last message, or, if that is a tool's, the whole run of tool messages
// at the end and the one message before it. It never returns nil, and aliases messages.
func Trim(messages []topics.Raw) []topics.Raw {
	start := len(messages)
	for start > 0 && isTool(messages[start-1]) {
		start--
	}
	if start > 0 {
		start--
	}
	if len(messages) == 0 {
		return []topics.Raw{}
	}
	return messages[start:]
}

func isTool(message topics.Raw) bool {
	role := lookup(trimSpace(message), "role")
	return isString(role) && unquote(role) == "tool"
}

// AssistantText is the text that the assistant wrote in a turn: see Folder.AssistantText. It knows the events' own stop
// reason only, so with Strict it can fail where a fold with a terminal result does not, and the other way round.
func AssistantText(events []Event, opts ...Option) (string, error) {
	f := NewFolder(opts...)
	for _, e := range events {
		if err := f.Add(e); err != nil {
			return "", err
		}
	}
	return f.AssistantText()
}
