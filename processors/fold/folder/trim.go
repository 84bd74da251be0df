package folder

import "github.com/turntable-streams/turntable/topics"

// Trim returns the trailing unit of messages: the last message, or, if it is a tool's, all consecutive tool messages at
// the end and the message before them. It never returns nil. The result aliases messages.
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

// AssistantText returns the text that the assistant wrote in a turn: see Folder.AssistantText. It uses the stop reason of
// the events. With Strict it can therefore fail when a Batch with a terminal result does not, and vice versa.
func AssistantText(events []Event, opts ...Option) (string, error) {
	f := NewFolder(opts...)
	for _, e := range events {
		if err := f.Add(e); err != nil {
			return "", err
		}
	}
	return f.AssistantText()
}
