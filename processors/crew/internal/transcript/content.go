package transcript

import (
	"strings"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/fold/bridge"
	"github.com/turntable-streams/turntable/topics"
)

// clip marks a resource in a text.
const clip = "\U0001F4CE "

// Flatten returns the content of a tool call as text: an item a line, at most 4 KiB.
func Flatten(content topics.Raw) string {
	items := bridge.Elements(content)
	if items == nil && len(content) > 0 && content[0] != '[' {
		items = []topics.Raw{content}
	}
	var text strings.Builder
	for i, item := range items {
		if text.Len() > maxContent {
			break
		}
		if i > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(flattened(item))
	}
	return truncate.Within(text.String(), maxContent)
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
	switch bridge.String(bridge.Get(block, "type")) {
	case "text":
		return bridge.String(bridge.Get(block, "text"))
	case "resource":
		resource := bridge.Get(block, "resource")
		return strings.TrimSuffix(clip+bridge.String(bridge.Get(resource, "uri"))+"\n"+
			bridge.String(bridge.Get(resource, "text")), "\n")
	case "resource_link":
		return clip + bridge.String(bridge.Get(block, "uri"))
	case "image", "audio":
		return "[" + bridge.String(bridge.Get(block, "type")) + " content]"
	}
	return string(item)
}
