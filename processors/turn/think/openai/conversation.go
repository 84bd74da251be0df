package openai

import (
	"strings"

	sdk "github.com/openai/openai-go/v3"

	"github.com/turntable-streams/turntable/processors/turn/think/internal/prompt"
)

// messageParams translates messages for the API. The result of each tool is a message.
func messageParams(messages []prompt.Message) []sdk.ChatCompletionMessageParamUnion {
	var all []sdk.ChatCompletionMessageParamUnion
	for _, m := range messages {
		if m.Assistant {
			all = append(all, assistant(m.Blocks))
			continue
		}
		var parts []sdk.ChatCompletionContentPartUnionParam
		for _, b := range m.Blocks {
			switch b.Kind {
			case prompt.Result:
				all = append(all, sdk.ToolMessage(resultText(b), b.ID))
			case prompt.Text:
				parts = append(parts, sdk.TextContentPart(b.Text))
			case prompt.Image:
				parts = append(parts, sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: imageURL(b)}))
			case prompt.Other:
				parts = append(parts, sdk.TextContentPart(b.Omitted()))
			}
		}
		switch {
		case len(parts) == 1 && parts[0].OfText != nil: // not every server accepts parts
			all = append(all, sdk.UserMessage(parts[0].OfText.Text))
		case len(parts) > 0:
			all = append(all, sdk.UserMessage(parts))
		}
	}
	return all
}

// assistant returns a message of the assistant. Texts are joined, because servers differ in what they accept as parts.
func assistant(blocks []prompt.Block) sdk.ChatCompletionMessageParamUnion {
	m := &sdk.ChatCompletionAssistantMessageParam{}
	var texts []string
	for _, b := range blocks {
		switch b.Kind {
		case prompt.Text:
			texts = append(texts, b.Text)
		case prompt.Call:
			m.ToolCalls = append(m.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
				OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
					ID: b.ID, Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{
						Name: b.Name, Arguments: string(b.Input),
					},
				},
			})
		}
	}
	if len(texts) > 0 || len(m.ToolCalls) == 0 {
		m.Content.OfString = sdk.String(strings.Join(texts, "\n\n"))
	}
	return sdk.ChatCompletionMessageParamUnion{OfAssistant: m}
}

// resultText returns the text of a result. The API has no other way to say that a tool failed.
func resultText(b prompt.Block) string {
	if b.Failed {
		return "Error: " + b.Text
	}
	return b.Text
}

func imageURL(b prompt.Block) string {
	if b.URL != "" {
		return b.URL
	}
	return "data:" + b.MediaType + ";base64," + b.Data
}
