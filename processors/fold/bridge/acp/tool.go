package acp

import (
	"bytes"
	"strings"

	"github.com/turntable-streams/turntable/processors/fold/bridge"
	"github.com/turntable-streams/turntable/topics"
)

// toolCall holds the output fields of a call. Each update replaces the fields that it contains.
type toolCall struct {
	call               *bridge.Call
	content, rawOutput topics.Raw
}

// tool translates a call and its updates. An update of an unknown call adds the call. A tool_call with the ID of one that
// has its result is another call: some agents number their calls from the start for every request to their model.
func (b *Bridge) tool(update topics.Raw) {
	id := bridge.String(bridge.Get(update, "toolCallId"))
	if id == "" {
		return
	}
	if b.calls == nil {
		b.calls = map[string]*toolCall{}
	}
	c, input := b.calls[id], bridge.Get(update, "rawInput")
	announced := bridge.String(bridge.Get(update, "sessionUpdate")) == "tool_call"
	if c == nil || announced && b.turn.Open(id) == nil {
		c = &toolCall{call: b.turn.Begin(id, name(update), input)}
		b.calls[id] = c
	} else {
		b.turn.Update(c.call, input)
	}
	replace(&c.content, bridge.Get(update, "content"))
	replace(&c.rawOutput, bridge.Get(update, "rawOutput"))
	switch status := bridge.String(bridge.Get(update, "status")); status {
	case "completed", "failed":
		b.turn.Result(id, c.output(), status == "failed")
	}
}

func replace(held *topics.Raw, v topics.Raw) {
	if v != nil {
		*held = bytes.Clone(v)
	}
}

// name returns the title of a call, or else its kind.
func name(call topics.Raw) topics.Raw {
	for _, key := range []string{"title", "kind"} {
		if v := bridge.Get(call, key); bridge.String(v) != "" {
			return v
		}
	}
	return topics.Raw(`"tool"`)
}

// output returns the text of the content, or else the raw output, or else an empty text.
func (c *toolCall) output() topics.Raw {
	var lines []string
	for _, item := range bridge.Elements(c.content) {
		content := bridge.Get(item, "content")
		text := bridge.Get(content, "text")
		if text == nil {
			text = bridge.Get(content, "resource", "text")
		}
		if text == nil {
			lines = append(lines, string(item))
			continue
		}
		lines = append(lines, bridge.String(text))
	}
	switch {
	case len(lines) > 0:
		return bridge.Text(strings.Join(lines, "\n"))
	case c.rawOutput != nil:
		return c.rawOutput
	}
	return topics.Raw(`""`)
}
