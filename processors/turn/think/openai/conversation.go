package openai

import (
	"strconv"
	"strings"

	"github.com/turntable-streams/turntable/processors/turn/think/internal/provider"
	"github.com/turntable-streams/turntable/topics"
)

// messagesOf translates messages for the API. The result of each tool is a message.
func messagesOf(messages []provider.Message) []message {
	var all []message
	for _, m := range messages {
		if m.Assistant {
			all = append(all, assistant(m.Blocks))
			continue
		}
		var parts []part
		for _, b := range m.Blocks {
			switch b.Kind {
			case provider.Result:
				all = append(all, message{Role: "tool", Content: resultText(b), ToolCallID: b.ID})
			case provider.Text:
				parts = append(parts, part{Type: "text", Text: &b.Text})
			case provider.Image:
				parts = append(parts, part{Type: "image_url", ImageURL: &imageURL{addressOfImage(b)}})
			case provider.Other:
				parts = append(parts, part{Type: "text", Text: new(b.Omitted())})
			}
		}
		switch {
		case len(parts) == 1 && parts[0].Text != nil: // not every server accepts parts
			all = append(all, message{Role: "user", Content: *parts[0].Text})
		case len(parts) > 0:
			all = append(all, message{Role: "user", Content: parts})
		}
	}
	return all
}

// assistant returns a message of the assistant. Texts are joined, because servers differ in what they accept as parts.
func assistant(blocks []provider.Block) message {
	m := message{Role: "assistant"}
	var texts []string
	var state topics.Raw
	calls := 0 // of the reply that the state belongs to
	for _, b := range blocks {
		switch b.Kind {
		case provider.State:
			state, calls = b.Raw, 0
			if fields := extraFields(state, "message"); fields != nil {
				m.Extra = fields
			}
		case provider.Text:
			texts = append(texts, b.Text)
		case provider.Call:
			m.ToolCalls = append(m.ToolCalls, toolCall{
				ID: b.ID, Type: "function", Function: function{Name: b.Name, Arguments: string(b.Input)},
				Extra: extraFields(state, strconv.Itoa(calls)),
			})
			calls++
		}
	}
	if len(texts) > 0 || len(m.ToolCalls) == 0 {
		m.Content = strings.Join(texts, "\n\n")
	}
	return m
}

// resultText returns the text of a result. The API has no other way to say that a tool failed.
func resultText(b provider.Block) string {
	if b.Failed {
		return "Error: " + b.Text
	}
	return b.Text
}

func addressOfImage(b provider.Block) string {
	if b.URL != "" {
		return b.URL
	}
	return "data:" + b.MediaType + ";base64," + b.Data
}
