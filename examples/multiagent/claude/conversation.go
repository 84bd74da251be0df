package claude

import (
	"errors"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// ErrConversation is the error of a conversation that is empty or has a message that cannot be translated.
var ErrConversation = errors.New("claude: conversation cannot be passed on")

// conversation translates messages for the API, which requires that the roles user and assistant alternate.
func conversation(messages []topics.Message) ([]anthropic.MessageParam, error) {
	var all []anthropic.MessageParam
	for _, m := range messages {
		role := anthropic.MessageParamRoleUser
		if m.Role != nil && *m.Role == "assistant" {
			role = anthropic.MessageParamRoleAssistant
		}
		blocks, err := blocksOf(m)
		if err != nil {
			return nil, err
		}
		switch last := len(all) - 1; {
		case len(blocks) == 0: // the API rejects blank messages
		case last >= 0 && all[last].Role == role:
			all[last].Content = append(all[last].Content, blocks...)
		default:
			all = append(all, anthropic.MessageParam{Role: role, Content: blocks})
		}
	}
	if len(all) == 0 {
		return nil, ErrConversation
	}
	return all, nil
}

// blocksOf returns the content of a message as blocks.
func blocksOf(m topics.Message) ([]anthropic.ContentBlockParamUnion, error) {
	switch content := jsontext.Value(m.Content); {
	case content == nil:
		return nil, nil
	case content.Kind() != '[':
		return textBlock(*topics.TextOf(m.Content)), nil
	case m.Role != nil && *m.Role == "tool":
		return results(m.Content)
	}
	elements, err := topics.Elements(m.Content)
	if err != nil {
		return nil, ErrConversation
	}
	var blocks []anthropic.ContentBlockParamUnion
	for _, e := range elements {
		switch v := jsontext.Value(e); v.Kind() {
		case '{':
			blocks = append(blocks, param.Override[anthropic.ContentBlockParamUnion](v))
		case '"':
			blocks = append(blocks, textBlock(*topics.TextOf(e))...)
		}
	}
	return blocks, nil
}

// textBlock returns a text as a block, none if it is blank.
func textBlock(text string) []anthropic.ContentBlockParamUnion {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return []anthropic.ContentBlockParamUnion{anthropic.NewTextBlock(text)}
}

// result is a tool result in the content of a tool message.
type result struct {
	ToolUseID string         `json:"tool_use_id"`
	Result    jsontext.Value `json:"result"`
	Status    string         `json:"status"`
}

// results returns the tool results in the content of a tool message as blocks.
func results(content topics.Raw) ([]anthropic.ContentBlockParamUnion, error) {
	var all []result
	if err := json.Unmarshal(content, &all, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, ErrConversation // the error would quote the content
	}
	var blocks []anthropic.ContentBlockParamUnion
	for _, r := range all {
		text := string(r.Result)
		if len(r.Result) == 0 || r.Result.Kind() == 'n' {
			text = "{}"
		}
		blocks = append(blocks, anthropic.NewToolResultBlock(r.ToolUseID, text, r.Status == "error"))
	}
	return blocks, nil
}
