package bridge

import (
	"strings"

	"github.com/turntable-streams/turntable/topics"
)

// block is an open content block.
type block struct {
	call  *Call // nil if it is not a tool call
	input strings.Builder
}

func (b *Anthropic) blockStart(data topics.Raw) {
	content := Get(data, "content_block")
	kind := String(Get(content, "type"))
	open := &block{}
	if b.blocks == nil {
		b.blocks = map[string]*block{}
	}
	b.blocks[string(Get(data, "index"))] = open
	b.turn.Close()
	switch {
	case kind == "text":
		b.turn.Text(Get(content, "text"))
	case kind == "thinking":
		b.turn.Thought(Get(content, "thinking"))
	case strings.HasSuffix(kind, "tool_use"): // the client's, the server's, those of MCP
		if id := String(Get(content, "id")); id != "" {
			open.call = b.turn.Begin(id, Get(content, "name"), Get(content, "input"))
		}
	case strings.HasSuffix(kind, "tool_result"): // of a tool that the server ran
		result := Get(content, "content")
		failed := strings.HasSuffix(String(Get(result, "type")), "_error") ||
			string(Get(content, "is_error")) == "true"
		b.turn.Result(String(Get(content, "tool_use_id")), result, failed)
	}
}

func (b *Anthropic) blockDelta(data topics.Raw) {
	delta := Get(data, "delta")
	switch String(Get(delta, "type")) {
	case "text_delta":
		b.turn.Text(Get(delta, "text"))
	case "thinking_delta":
		b.turn.Thought(Get(delta, "thinking"))
	case "input_json_delta":
		if open := b.blocks[string(Get(data, "index"))]; open != nil {
			open.input.WriteString(String(Get(delta, "partial_json")))
		}
	}
}

// blockStop updates a call with its complete input. If the input was cut off because the message ran out of tokens, it is
// not JSON, and the call keeps its initial input.
func (b *Anthropic) blockStop(data topics.Raw) {
	index := string(Get(data, "index"))
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
