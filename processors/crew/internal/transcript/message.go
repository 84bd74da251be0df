package transcript

import (
	"cmp"
	"strings"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/fold/bridge"
	"github.com/turntable-streams/turntable/topics"
)

// text returns a member that is a text, empty for any other value.
func text(object topics.Raw, name string) string { return bridge.String(bridge.Get(object, name)) }

// blockOf reads a content block.
func blockOf(content topics.Raw) Block {
	m := topics.LookupAll(content, "type", "text", "data", "uri", "mimeType", "name")
	b := Block{
		Type: bridge.String(m[0]), Text: bridge.String(m[1]), Data: bridge.String(m[2]), URI: bridge.String(m[3]),
		MimeType: bridge.String(m[4]), Name: bridge.String(m[5]),
	}
	switch b.Type {
	case "image":
		return Block{Type: b.Type, Data: b.Data, URI: b.URI, MimeType: cmp.Or(b.MimeType, "image/png")}
	case "audio":
		return Block{Type: b.Type, Data: b.Data, URI: b.URI, MimeType: cmp.Or(b.MimeType, "audio/wav")}
	case "resource": // clients show its text; they have no use for a blob
		r := bridge.Get(content, "resource")
		return Block{Type: b.Type, Text: text(r, "text"), URI: text(r, "uri"), MimeType: text(r, "mimeType")}
	case "resource_link":
		return Block{Type: b.Type, URI: b.URI, MimeType: b.MimeType, Name: b.Name}
	}
	return b
}

// message returns a chunk of what the agent says.
func (a applied) message() []Change {
	block := blockOf(a.get("content"))
	switch block.Type {
	case "text":
		return a.chunk(EventText, block.Text)
	case "image", "audio", "resource", "resource_link":
		return []Change{{Event: EventContent, Fields: Content{AgentID: a.agentID, Content: block}}}
	}
	return a.chunk(EventText, "\n["+block.Type+" content]\n")
}

// thought returns a chunk of what the agent thinks. Only texts are shown.
func (a applied) thought() []Change {
	block := blockOf(a.get("content"))
	if block.Type != "text" {
		return nil
	}
	return a.chunk(EventThinking, block.Text)
}

func (a applied) chunk(event, said string) []Change {
	if said == "" {
		return nil
	}
	return []Change{{Event: event, Fields: Text{AgentID: a.agentID, Text: said, MessageID: bridge.String(a.get("messageId"))}}}
}

// clip marks a resource in a text.
const clip = "\U0001F4CE "

// Flatten returns the content of a tool call as text: an item a line, at most 4 KiB.
func Flatten(content topics.Raw) string {
	items := bridge.Elements(content)
	if items == nil && len(content) > 0 && content[0] != '[' {
		items = []topics.Raw{content}
	}
	var b strings.Builder
	for i, item := range items {
		if b.Len() > maxContent {
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(flattened(item))
	}
	return truncate.Within(b.String(), maxContent)
}

// flattened returns an item as text. One that has none is shown as the agent wrote it.
func flattened(item topics.Raw) string {
	if item[0] == '"' {
		return bridge.String(item)
	}
	block := item
	if inner := bridge.Get(item, "content"); inner != nil {
		block = inner
	}
	switch b := blockOf(block); b.Type {
	case "text":
		return b.Text
	case "resource":
		return strings.TrimSuffix(clip+b.URI+"\n"+b.Text, "\n")
	case "resource_link":
		return clip + b.URI
	case "image", "audio":
		return "[" + b.Type + " content]"
	}
	return string(item)
}
