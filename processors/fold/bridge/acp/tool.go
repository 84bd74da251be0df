package acp

import (
	"bytes"
	"strings"

	"github.com/turntable-streams/turntable/processors/fold/bridge"
	"github.com/turntable-streams/turntable/topics"
)

// toolCall is what updates left of a call: each replaces what it names.
type toolCall struct{ content, rawOutput topics.Raw }

// tool takes a call and its updates alike: an update of an unknown call announces it.
func (b *Bridge) tool(update topics.Raw) {
	id := bridge.String(bridge.Get(update, "toolCallId"))
	if id == "" {
		return
	}
	if b.calls == nil {
		b.calls = map[string]*toolCall{}
	}
	c := b.calls[id]
	if c == nil {
		c = &toolCall{}
		b.calls[id] = c
	}
	replace(&c.content, bridge.Get(update, "content"))
	replace(&c.rawOutput, bridge.Get(update, "rawOutput"))
	b.turn.Call(id, name(update), bridge.Get(update, "rawInput"))
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

// name is the label that a live turn shows.
func name(call topics.Raw) topics.Raw {
	for _, key := range []string{"title", "kind"} {
		if v := bridge.Get(call, key); bridge.String(v) != "" {
			return v
		}
	}
	return topics.Raw(`"tool"`)
}

// output is the text of the content, else the raw output, else nothing.
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
