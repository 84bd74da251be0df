package provider

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/internal/toolcall"
	"github.com/turntable-streams/turntable/topics"
)

// Message is a message of the user or the assistant. The results of tools are in the user's messages, before other blocks.
type Message struct {
	Assistant bool
	Blocks    []Block
}

// Block is a content block. Which fields are set depends on Kind.
type Block struct {
	Kind Kind
	// Raw is the block as it is in the conversation, in the format of Anthropic's API; nil if it is not in that format. That of
	// State is what the adapter's reply had.
	Raw  topics.Raw
	Text string // Text and Result

	MediaType string // Image with Data
	Data      string // Image: base64; empty if it has a URL
	URL       string // Image

	ID     string     // Call and Result
	Name   string     // Call and Result
	Input  topics.Raw // Call: an object
	Failed bool       // Result
}

// Kind is the kind of a block.
type Kind int

// The kinds of blocks. Other is a block that only Anthropic's API knows, such as a document or a thinking block. State is
// before the other blocks of its reply.
const (
	Text Kind = iota
	Image
	Call
	Result
	Other
	State
)

// Conversation reads the conversation of a step: messages whose roles alternate, in which every call has its result in the
// next message, with names and IDs that the provider accepts, and without halves of characters. It fails with
// think.ErrConversation if no message has content or one cannot be read.
func (c *Client) Conversation(s think.Step) ([]Message, *Names, error) {
	var all []Message
	open := 0 // the first message of the open turn
	for i, m := range s.Messages {
		if m.Role == nil || *m.Role != "assistant" && *m.Role != "tool" {
			open = i
		}
	}
	for i, m := range s.Messages {
		m.Content = toolcall.WellFormed(m.Content)
		blocks, err := blocksOf(m)
		if err != nil {
			return nil, nil, err
		}
		assistant := m.Role != nil && *m.Role == "assistant"
		foreign := Call // only the assistant calls tools, and only the user has their results
		if assistant {
			foreign = Result
		}
		blocks = slices.DeleteFunc(blocks, func(b Block) bool { return b.Kind == foreign })
		state := think.StateOf(m, c.origin, c.Settings.Model)
		if state == nil && assistant && i >= open {
			state = c.lately.of(s.SessionID, blocks)
		}
		if assistant && state != nil && len(blocks) > 0 {
			blocks = slices.Insert(blocks, 0, Block{Kind: State, Raw: toolcall.WellFormed(state)})
		}
		switch last := len(all) - 1; {
		case len(blocks) == 0: // providers reject blank messages
		case last >= 0 && all[last].Assistant == assistant:
			all[last].Blocks = append(all[last].Blocks, blocks...)
		default:
			all = append(all, Message{Assistant: assistant, Blocks: blocks})
		}
	}
	if len(all) == 0 {
		return nil, nil, think.ErrConversation
	}
	names := c.names.with(all)
	return pair(all, &sent{names: names, rules: c.rules, seen: map[string]int{}, taken: map[string]bool{}}), names, nil
}

// blocksOf returns the content of a message.
func blocksOf(m topics.Message) ([]Block, error) {
	switch content := jsontext.Value(m.Content); {
	case content == nil:
		return nil, nil
	case content.Kind() != '[':
		return textBlock(*topics.TextOf(m.Content)), nil
	}
	elements, err := topics.Elements(m.Content)
	if err != nil {
		return nil, think.ErrConversation
	}
	tool := m.Role != nil && *m.Role == "tool"
	var blocks []Block
	for _, e := range elements {
		switch kind := jsontext.Value(e).Kind(); {
		case kind == '{' && tool && String(e, "type") != "tool_result":
			blocks = append(blocks, entry(e))
		case kind == '{':
			block, ok := blockOf(e)
			if ok {
				blocks = append(blocks, block)
			}
		case tool:
			return nil, think.ErrConversation // it can be a result, but not of which call
		case kind == '"':
			blocks = append(blocks, textBlock(*topics.TextOf(e))...)
		}
	}
	return blocks, nil
}

// textBlock returns a text as a block, none if it is blank.
func textBlock(text string) []Block {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return []Block{{Kind: Text, Text: text}}
}

// entry returns the result of a tool in the content of a tool message of the turn.
func entry(raw topics.Raw) Block {
	result := Get(raw, "result")
	if result == nil {
		result = topics.Raw("{}")
	}
	return Block{
		Kind: Result, ID: String(raw, "tool_use_id"), Name: String(raw, "name"), Text: string(result),
		Failed: String(raw, "status") == "error",
	}
}

// blockOf returns a content block in the format of Anthropic's API; false for a blank text.
func blockOf(raw topics.Raw) (Block, bool) {
	b := Block{Kind: Other, Raw: raw}
	switch String(raw, "type") {
	case "text":
		b.Kind, b.Text = Text, String(raw, "text")
		return b, strings.TrimSpace(b.Text) != ""
	case "image":
		source := Get(raw, "source")
		b.MediaType, b.Data, b.URL = String(source, "media_type"), String(source, "data"), String(source, "url")
		if b.Data != "" || b.URL != "" {
			b.Kind = Image
		}
	case "tool_use":
		b.Kind, b.ID, b.Name = Call, String(raw, "id"), String(raw, "name")
		if b.Input, _ = topics.Lookup(raw, "input"); jsontext.Value(b.Input).Kind() != '{' {
			b.Input = topics.Raw("{}")
		}
	case "tool_result":
		content := Get(raw, "content")
		failed := Get(raw, "is_error")
		b.Kind, b.ID, b.Text = Result, String(raw, "tool_use_id"), topics.Text(content)
		b.Failed = string(failed) == "true"
	}
	return b, true
}

// Get returns a member of an object; nil if it is absent or null.
func Get(object topics.Raw, name string) topics.Raw {
	value, _ := topics.Lookup(object, name)
	return value
}

// String returns a member of an object that is a string, otherwise "".
func String(object topics.Raw, name string) string {
	value := Get(object, name)
	if jsontext.Value(value).Kind() != '"' {
		return ""
	}
	return topics.Text(value)
}

// Omitted returns the text that stands for a block in the user's messages that a provider other than Anthropic cannot read.
func (b Block) Omitted() string {
	kind := String(b.Raw, "type")
	if kind == "" {
		kind = "content"
	}
	return "[" + kind + " omitted: the model cannot read it]"
}
