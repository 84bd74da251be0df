package host

import (
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/topics"
)

const (
	// maxUpdate is the size of the largest update in a record, in bytes.
	maxUpdate = 256 << 10
	// maxField is the size of the largest other part of a message in a record.
	maxField = 64 << 10
	// maxAsked is the size of the largest request that a person is asked about: larger ones cannot be shown whole.
	maxAsked = 224 << 10
)

// sizeOf estimates the size of a record.
func sizeOf(body crewbody.Body) int {
	switch b := body.(type) {
	case crewbody.Permission:
		return len(b.ToolCall) + len(b.Options) + len(b.Args)
	case crewbody.Started:
		return len(b.Capabilities) + len(b.Info)
	case crewbody.SessionReady:
		return len(b.Modes) + len(b.Options)
	case crewbody.Problem:
		return len(b.Message)
	default:
		return 1 << 10
	}
}

// bounded is a part of a message, or nil if it is null or too large.
func bounded(raw topics.Raw) topics.Raw {
	if len(raw) > maxField || string(raw) == "null" || tooDeep(raw) {
		return nil
	}
	return raw
}

// tooDeep reports whether a record with a value could be deeper than readers accept.
func tooDeep(raw topics.Raw) bool { return codec.Deeper(raw, codec.MaxDepth/2) }

// fitting is an update in parts that fit into records. A long text becomes several chunks. Other updates lose their large
// members, which are contents of files and outputs of programs; crewbody.Shortened says how many.
func fitting(raw topics.Raw) []topics.Raw {
	if len(raw) <= maxUpdate && !tooDeep(raw) {
		return []topics.Raw{raw}
	}
	var members map[string]topics.Raw
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	var content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(members["content"], &content) == nil && content.Type == "text" {
		var parts []topics.Raw
		for text := content.Text; text != ""; {
			n := min(len(text), maxUpdate/8) // a byte may be written as six
			for n < len(text) && !utf8.RuneStart(text[n]) {
				n--
			}
			members["content"] = encoded(map[string]string{"type": "text", "text": text[:n]})
			parts, text = append(parts, encoded(members)), text[n:]
		}
		return parts
	}
	if small := shortened(members); small != nil {
		return []topics.Raw{small}
	}
	return nil
}

// askable reports whether a person can be shown all of a request.
func askable(raw topics.Raw) bool { return len(raw) <= maxAsked && !tooDeep(raw) }

// shortened is an object without its large members, nil if that is still too large. The input of a tool keeps its beginning.
func shortened(members map[string]topics.Raw) topics.Raw {
	dropped, input := 0, members["rawInput"]
	for name, value := range members {
		if len(value) > maxUpdate/16 || tooDeep(value) {
			dropped++
			delete(members, name)
		}
	}
	if len(input) > 0 && members["rawInput"] == nil {
		members["rawInput"] = encoded(map[string]any{"start": truncate.Text(string(input), maxUpdate/32), "bytes": len(input)})
	}
	members["_meta"] = encoded(map[string]any{crewbody.Shortened: dropped})
	if small := encoded(members); len(small) <= maxUpdate && jsontext.Value(small).IsValid() {
		return small
	}
	return nil
}
