package bridge

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// thinkBlocks maps the kinds of content blocks of a message to their translations. Other kinds are ignored.
var thinkBlocks = map[string]func(*Think, topics.Raw){
	"text":     func(b *Think, v topics.Raw) { b.whole("message", Get(v, "text")) },
	"thinking": func(b *Think, v topics.Raw) { b.whole("thought", Get(v, "thinking")) },
	"tool_use": func(b *Think, v topics.Raw) {
		if id := String(Get(v, "id")); id != "" {
			b.turn.Begin(id, Get(v, "name"), Get(v, "input"))
		}
	},
}

// message translates a message of the assistant. Other messages are not part of its turn.
func (b *Think) message(message topics.Raw) {
	if String(Get(message, "role")) != "assistant" {
		return
	}
	content := Get(message, "content")
	b.whole("message", content)
	for _, block := range Elements(content) {
		if jsontext.Value(block).Kind() == '"' {
			b.whole("message", block)
			continue
		}
		if translate := thinkBlocks[String(Get(block, "type"))]; translate != nil {
			translate(b, block)
		}
	}
}

// whole adds a complete text, if the content is a string and not empty.
func (b *Think) whole(kind string, content topics.Raw) {
	if String(content) != "" {
		b.turn.Emit(kind, Fields{}.Value("text", content))
	}
}

func optional(s *string) topics.Raw {
	if s == nil {
		return nil
	}
	return Text(*s)
}
