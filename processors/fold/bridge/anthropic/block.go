package anthropic

import (
	"strings"

	"github.com/turntable-streams/turntable/processors/fold/bridge"
	"github.com/turntable-streams/turntable/topics"
)

// block is an open content block.
type block struct {
	call  *bridge.Call // nil if it is not a tool call
	input strings.Builder
}

func (b *Bridge) blockStart(data topics.Raw) {
	content := bridge.Get(data, "content_block")
	kind := bridge.String(bridge.Get(content, "type"))
	open := &block{}
	if b.blocks == nil {
		b.blocks = map[string]*block{}
	}
	b.blocks[string(bridge.Get(data, "index"))] = open
	b.turn.Close()
	switch {
	case kind == "text":
		b.turn.Text(bridge.Get(content, "text"))
	case kind == "thinking":
		b.turn.Thought(bridge.Get(content, "thinking"))
	case strings.HasSuffix(kind, "tool_use"): // the client's, the server's, those of MCP
		if id := bridge.String(bridge.Get(content, "id")); id != "" {
			open.call = b.turn.Begin(id, bridge.Get(content, "name"), bridge.Get(content, "input"))
		}
	case strings.HasSuffix(kind, "tool_result"): // of a tool that the server ran
		result := bridge.Get(content, "content")
		failed := strings.HasSuffix(bridge.String(bridge.Get(result, "type")), "_error") ||
			string(bridge.Get(content, "is_error")) == "true"
		b.turn.Result(bridge.String(bridge.Get(content, "tool_use_id")), result, failed)
	}
}

func (b *Bridge) blockDelta(data topics.Raw) {
	delta := bridge.Get(data, "delta")
	switch bridge.String(bridge.Get(delta, "type")) {
	case "text_delta":
		b.turn.Text(bridge.Get(delta, "text"))
	case "thinking_delta":
		b.turn.Thought(bridge.Get(delta, "thinking"))
	case "input_json_delta":
		if open := b.blocks[string(bridge.Get(data, "index"))]; open != nil {
			open.input.WriteString(bridge.String(bridge.Get(delta, "partial_json")))
		}
	}
}

// blockStop updates a call with its complete input. If the input was cut off because the message ran out of tokens, it is
// not JSON, and the call keeps its initial input.
func (b *Bridge) blockStop(data topics.Raw) {
	index := string(bridge.Get(data, "index"))
	open := b.blocks[index]
	delete(b.blocks, index)
	b.turn.Close()
	if open == nil || open.call == nil {
		return
	}
	if input := topics.Raw(open.input.String()); valid(input) {
		b.turn.Update(open.call, input)
	}
}
