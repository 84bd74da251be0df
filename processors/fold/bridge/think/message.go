package think

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/fold/bridge"
	"github.com/turntable-streams/turntable/topics"
)

// blocks says what each kind of content block becomes. All others become nothing.
var blocks = map[string]func(*Bridge, topics.Raw){
	"text":     func(b *Bridge, v topics.Raw) { b.whole("message", bridge.Get(v, "text")) },
	"thinking": func(b *Bridge, v topics.Raw) { b.whole("thought", bridge.Get(v, "thinking")) },
	"tool_use": func(b *Bridge, v topics.Raw) {
		if id := bridge.String(bridge.Get(v, "id")); id != "" {
			b.turn.Call(id, bridge.Get(v, "name"), bridge.Get(v, "input"))
		}
	},
}

// message translates what the assistant said; what the others said is not its turn.
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

// whole is a whole text, if it is one and not empty.
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
