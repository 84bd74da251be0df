package openai

import (
	"strconv"
	"strings"

	sdk "github.com/openai/openai-go/v3"

	"github.com/turntable-streams/turntable/processors/turn/think/internal/provider"
	"github.com/turntable-streams/turntable/topics"
)

// messageParams translates messages for the API. The result of each tool is a message.
func messageParams(messages []provider.Message) []sdk.ChatCompletionMessageParamUnion {
	var all []sdk.ChatCompletionMessageParamUnion
	for _, m := range messages {
		if m.Assistant {
			all = append(all, assistant(m.Blocks))
			continue
		}
		var parts []sdk.ChatCompletionContentPartUnionParam
		for _, b := range m.Blocks {
			switch b.Kind {
			case provider.Result:
				all = append(all, sdk.ToolMessage(resultText(b), b.ID))
			case provider.Text:
				parts = append(parts, sdk.TextContentPart(b.Text))
			case provider.Image:
				parts = append(parts, sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: imageURL(b)}))
			case provider.Other:
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
func assistant(blocks []provider.Block) sdk.ChatCompletionMessageParamUnion {
	m := &sdk.ChatCompletionAssistantMessageParam{}
	var texts []string
	var state topics.Raw
	calls := 0 // of the reply that the state belongs to
	for _, b := range blocks {
		switch b.Kind {
		case provider.State:
			state, calls = b.Raw, 0
			if fields := extraFields(state, "message"); fields != nil {
				m.SetExtraFields(fields)
			}
		case provider.Text:
			texts = append(texts, b.Text)
		case provider.Call:
			call := &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID: b.ID, Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: b.Name, Arguments: string(b.Input)},
			}
			if fields := extraFields(state, strconv.Itoa(calls)); fields != nil {
				call.SetExtraFields(fields)
			}
			calls++
			m.ToolCalls = append(m.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: call})
		}
	}
	if len(texts) > 0 || len(m.ToolCalls) == 0 {
		m.Content.OfString = sdk.String(strings.Join(texts, "\n\n"))
	}
	return sdk.ChatCompletionMessageParamUnion{OfAssistant: m}
}

// resultText returns the text of a result. The API has no other way to say that a tool failed.
func resultText(b provider.Block) string {
	if b.Failed {
		return "Error: " + b.Text
	}
	return b.Text
}

func imageURL(b provider.Block) string {
	if b.URL != "" {
		return b.URL
	}
	return "data:" + b.MediaType + ";base64," + b.Data
}
