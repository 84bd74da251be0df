package transcript

import "github.com/turntable-streams/turntable/processors/fold/bridge"

// Media types of content that names none.
const (
	defaultImage = "image/png"
	defaultAudio = "audio/wav"
)

// message returns a chunk of what the agent says.
func (a applied) message() []Change {
	content := a.get("content")
	block := Block{
		Type: bridge.String(bridge.Get(content, "type")), URI: bridge.String(bridge.Get(content, "uri")),
		MimeType: bridge.String(bridge.Get(content, "mimeType")),
	}
	switch block.Type {
	case "text":
		return a.text(bridge.String(bridge.Get(content, "text")))
	case "image", "audio":
		block.Data = bridge.String(bridge.Get(content, "data"))
		if block.MimeType == "" {
			block.MimeType = defaultImage
			if block.Type == "audio" {
				block.MimeType = defaultAudio
			}
		}
	case "resource": // clients show its text; they have no use for a blob
		resource := bridge.Get(content, "resource")
		block.URI = bridge.String(bridge.Get(resource, "uri"))
		block.MimeType = bridge.String(bridge.Get(resource, "mimeType"))
		block.Text = bridge.String(bridge.Get(resource, "text"))
	case "resource_link":
		block.Name = bridge.String(bridge.Get(content, "name"))
	default:
		return a.text("\n[" + block.Type + " content]\n")
	}
	return []Change{{Event: EventContent, Fields: Content{AgentID: a.agentID, Content: block}}}
}

func (a applied) text(text string) []Change {
	if text == "" {
		return nil
	}
	fields := Text{AgentID: a.agentID, Text: text, MessageID: bridge.String(a.get("messageId"))}
	return []Change{{Event: EventText, Fields: fields, Text: text}}
}

// thought returns a chunk of what the agent thinks. Only texts are shown.
func (a applied) thought() []Change {
	content := a.get("content")
	text := bridge.String(bridge.Get(content, "text"))
	if bridge.String(bridge.Get(content, "type")) != "text" || text == "" {
		return nil
	}
	fields := Text{AgentID: a.agentID, Text: text, MessageID: bridge.String(a.get("messageId"))}
	return []Change{{Event: EventThinking, Fields: fields}}
}
