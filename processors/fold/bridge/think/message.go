package think

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/fold/bridge"
	"github.com/turntable-streams/turntable/topics"
)

// blocks maps the kinds of content blocks to their translations. Other kinds are ignored.
var blocks = map[string]func(*Bridge, topics.Raw){
	"text":     func(b *Bridge, v topics.Raw) { b.whole("message", bridge.Get(v, "text")) },
	"thinking": func(b *Bridge, v topics.Raw) { b.whole("thought", bridge.Get(v, "thinking")) },
	"tool_use": func(b *Bridge, v topics.Raw) {
		if id := bridge.String(bridge.Get(v, "id")); id != "" {
			b.turn.Begin(id, bridge.Get(v, "name"), bridge.Get(v, "input"))
		}
	},
}

// message translates a message of the assistant. Other messages are not part of its turn.
func (b *Bridge) message(message topics.Raw) {
	if bridge.String(bridge.Get(message, "role")) != "assistant" {
		return
	}
	content := bridge.Get(message, "content")
	b.whole("message", content)
	for _, block := range bridge.Elements(content) {
		if jsontext.Value(block).Kind() == '"' {
			b.whole("message", block)
			continue
		}
		if translate := blocks[bridge.String(bridge.Get(block, "type"))]; translate != nil {
			translate(b, block)
		}
	}
}

// whole adds a complete text, if the content is a string and not empty.
func (b *Bridge) whole(kind string, content topics.Raw) {
	if bridge.String(content) != "" {
		b.turn.Emit(kind, bridge.Fields{}.Value("text", content))
	}
}

func text(s *string) topics.Raw {
	if s == nil {
		return nil
	}
	return bridge.Text(*s)
}

func integer(n int64) topics.Raw { return strconv.AppendInt(nil, n, 10) }
